got=$(printf '10\n9\n300\n' | sh ./tally median) || exit 1
[ "$got" = "$(printf '10')" ] || { echo "tally median: got $got, want 10"; exit 1; }
