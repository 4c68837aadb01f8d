# lit.cfg.py: graph text, checked with FileCheck: tests/graph/*.ccn, later a folder for each pass.
#
#   # RUN: %ccn dump %s --stage graph | FileCheck %s
#   # CHECK: ...
#
# Run by tests/harness/graphs.py, which says where ccn is.
# SPDX-License-Identifier: Apache-2.0
import lit.formats

config.name = "ccn"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".ccn"]
config.test_exec_root = lit_config.params["output"]
config.substitutions.append(("%ccn", lit_config.params["ccn"]))
config.substitutions.append((r"\bFileCheck\b", lit_config.params["filecheck"]))
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in __import__("os").environ:
        config.environment[name] = __import__("os").environ[name]
