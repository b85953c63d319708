// Reached only if the processor check passes.
#include <cstdio>

int main() { std::puts("not refused"); }
