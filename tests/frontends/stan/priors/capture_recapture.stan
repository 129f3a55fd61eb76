// draws
// uniform: phi, p
functions {
  vector prob_uncaptured(int T, vector p, vector phi) {
    vector[T] chi;
    chi[T] = 1.0;
    for (t in 1 : (T - 1)) {
      int t_curr = T - t;
      int t_next = t_curr + 1;
      chi[t_curr] = (1 - phi[t_curr]) + phi[t_curr] * (1 - p[t_next]) * chi[t_next];
    }
    return chi;
  }
}
data {
  int<lower=2> T;
  int<lower=0> I;
  array[I, T] int<lower=0, upper=1> y;
  array[I] int<lower=1, upper=T> last;
}
parameters {
  vector<lower=0, upper=1>[T - 1] phi;
  vector<lower=0, upper=1>[T] p;
}
transformed parameters {
  vector<lower=0, upper=1>[T] chi = prob_uncaptured(T, p, phi);
}
model {
  for (i in 1 : I) {
    for (t in 2 : last[i]) {
      1 ~ bernoulli(phi[t - 1]);
      y[i, t] ~ bernoulli(p[t]);
    }
    1 ~ bernoulli(chi[last[i]]);
  }
}
generated quantities {
  real beta = phi[T - 1] * p[T];
}
