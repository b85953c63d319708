// The only file that compiles toml++.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
