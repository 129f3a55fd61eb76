functions {
  void half_normal_lp(real x, real s) {
    if (x < 0) return;
    target += normal_lpdf(x | 0, s) + log2();
  }
  void both_lp(vector x) { half_normal_lp(x[1], 1); half_normal_lp(x[2], 2); }
  real ring_lpdf(vector x, real r) { return -square(sqrt(dot_self(x)) - r); }
  real ones_lpmf(array[] int y, real p) { return sum(y) * log(p); }
}
data { array[3] int y; }
parameters { vector<lower=0>[2] x; real<lower=0,upper=1> p; }
model { both_lp(x); x ~ ring(1.5); y ~ ones(p); target += ring_lupdf(x | 2); }
alternative model { x ~ exponential(1); half_normal_lp(p, 1); }
