data { int n; int y; }
parameters { real<lower=0, upper=1> p1; real<lower=0, upper=1> p2; }
model { y ~ binomial(n, p1 * p2); }
alternative model { p1 ~ uniform(0, 1); p2 ~ uniform(0, 1); }
