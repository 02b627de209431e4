# count: how many numbers there are.
count() { grep -c .; }
