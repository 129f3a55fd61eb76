  real<lower=0> extra; // from an include }
