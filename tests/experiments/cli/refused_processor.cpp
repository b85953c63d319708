// Reached only where the processor check let it pass.
#include <cstdio>

int main() { std::puts("not refused"); }
