// test_header.cpp: ccn.h compiles as C++ and links from there.
// SPDX-License-Identifier: Apache-2.0
#include "ccn.h"

#include <cstdio>
#include <cstring>
#include <string>

static void add(const char *text, size_t size, void *user) {
  static_cast<std::string *>(user)->append(text, size);
}

int main() {
  static const char script[] = "print(\"{1 + 2}\")\n";
  std::string out;
  ccn_options o;
  ccn_context *c = nullptr;
  ccn_options_init(&o, sizeof o);
  o.print = add;
  o.print_user = &out;
  bool good =
    ccn_context_create(&o, &c) == CCN_OK && ccn_run(c, "main.ccn", script, std::strlen(script)) == CCN_OK;
  good = good && out == "3\n" && ccn_version() == CCN_VERSION;
  ccn_context_free(c);
  std::printf("%sok 1 - the header as C++\n1..1\n", good ? "" : "not ");
  return good ? 0 : 1;
}
