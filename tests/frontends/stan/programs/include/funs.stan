#include <more_funs.stan>
real f(real x) { return twice(x); }
