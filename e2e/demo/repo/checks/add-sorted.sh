got=$(printf '10\n9\n-1\n' | sh ./tally sorted) || exit 1
[ "$got" = "$(printf -- '-1\n9\n10')" ] || { echo "tally sorted: got $got, want -1 9 10"; exit 1; }
