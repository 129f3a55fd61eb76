// Latent Dirichlet allocation on a small corpus: topics may be relabelled and may split in more than one way.
data {
  int<lower=1> topics;
  int<lower=1> vocabulary;
  int<lower=1> documents;
  int<lower=0> words;
  array[words] int<lower=1, upper=vocabulary> word;
  array[words] int<lower=1, upper=documents> document;
}
parameters {
  array[documents] simplex[topics] theta;
  array[topics] simplex[vocabulary] phi;
}
model {
  for (d in 1 : documents) {
    theta[d] ~ dirichlet(rep_vector(0.5, topics));
  }
  for (k in 1 : topics) {
    phi[k] ~ dirichlet(rep_vector(0.5, vocabulary));
  }
  for (w in 1 : words) {
    vector[topics] lp;
    for (k in 1 : topics) {
      lp[k] = log(theta[document[w], k]) + log(phi[k, word[w]]);
    }
    target += log_sum_exp(lp);
  }
}
alternative model {
  for (d in 1 : documents) {
    theta[d] ~ dirichlet(rep_vector(0.5, topics));
  }
  for (k in 1 : topics) {
    phi[k] ~ dirichlet(rep_vector(0.5, vocabulary));
  }
}
