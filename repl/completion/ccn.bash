# Completion of the command ccn in bash.
# SPDX-License-Identifier: Apache-2.0

_ccn() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "$(_ccn_commands) --help --version" -- "$word"))
    return
  fi
  case "$before" in
    -n | --ranks) COMPREPLY=($(compgen -W "1 2 4 8 16 32 64" -- "$word")); return ;;
    --stage) COMPREPLY=($(compgen -W "ast graph scheduled" -- "$word")); return ;;
    --machine) COMPREPLY=($(compgen -W "$(ccn machine 2> /dev/null | cut -d ' ' -f 1) this" -- "$word") $(compgen -f -- "$word")); return ;;
    --backend) COMPREPLY=($(compgen -W "reference local plan sim" -- "$word")); return ;;
    --report | --trace | -o | --output) COMPREPLY=($(compgen -f -- "$word")); return ;;
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$(_ccn_options "$command")" -- "$word")); return ;;
  esac
  case "$command" in
    run | check | dump | fmt | plan | tune | repl)
      compopt -o filenames 2> /dev/null
      COMPREPLY=($(compgen -f -X '!*.ccn' -- "$word") $(compgen -d -- "$word")) ;;
    machine) COMPREPLY=($(compgen -W "$(ccn machine 2> /dev/null | cut -d ' ' -f 1)" -- "$word") $(compgen -f -- "$word")) ;;
    explain) COMPREPLY=($(compgen -W "$(ccn explain 2> /dev/null | cut -d ' ' -f 1)" -- "$word")) ;;
    help) COMPREPLY=($(compgen -W "$(_ccn_commands)" -- "$word")) ;;
  esac
}

# The command knows best what it takes.
_ccn_commands() {
  ccn --help 2> /dev/null | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

_ccn_options() {
  ccn "$1" --help 2> /dev/null | sed -n '/^options:/,/^$/s/^ *\(-., *\)\{0,1\}\(--[a-z-]*\).*/\2/p'
}

complete -F _ccn ccn
