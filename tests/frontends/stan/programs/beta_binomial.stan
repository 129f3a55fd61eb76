data { real al; real be; int y; int n; }
parameters { real<lower=0, upper=1> th; }
model { th ~ beta(al, be); y ~ binomial(n, th); }
alternative model { th ~ beta(al, be); }
