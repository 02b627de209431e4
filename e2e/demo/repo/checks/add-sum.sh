got=$(printf '1\n2\n39\n' | sh ./tally sum) || exit 1
[ "$got" = "$(printf '42')" ] || { echo "tally sum: got $got, want 42"; exit 1; }
