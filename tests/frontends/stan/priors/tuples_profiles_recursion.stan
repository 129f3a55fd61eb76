// density
functions {
  int fib(int n);
  int fib(int n) {
    if (n < 2) return n;
    return fib(n - 1) + fib(n - 2);
  }
  real my_lpdf(real x, real m) {
    return normal_lupdf(x | m, 2);
  }
  tuple(real, vector) both(vector x) {
    return (sum(x), x ^ 2);
  }
}
data { int<lower=0> N; array[N] real y; tuple(int, real) cfg; }
transformed data {
  real jitter = normal_rng(0, 1e-9);
  int k = fib(6);
  array[2] tuple(real, int) ts = {(1.0, 2), (3.0, 4)};
}
parameters { real mu; vector[2] b; real<lower=0> s; }
transformed parameters {
  tuple(real, vector[2]) tp = both(b);
}
model {
  profile("prior") {
    target += my_lupdf(mu | 0); // prior
    target += std_normal_lpdf(b); // prior
    s ~ gamma(2, 1); // prior
  }
  profile("likelihood") {
    y ~ normal(mu + tp.1 * ts[1].1 + jitter * k, s);
  }
}
generated quantities {
  array[N] real y_rep = normal_rng(rep_vector(mu, N), s);
  complex z = to_complex(mu, s);
  int big = fib(5) > 3 ? 1 : 0;
}
