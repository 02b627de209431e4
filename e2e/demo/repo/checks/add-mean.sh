got=$(printf '2\n3\n' | sh ./tally mean) || exit 1
[ "$got" = "$(printf '2.5')" ] || { echo "tally mean: got $got, want 2.5"; exit 1; }
