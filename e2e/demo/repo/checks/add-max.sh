got=$(printf '7\n40\n9\n' | sh ./tally max) || exit 1
[ "$got" = "$(printf '40')" ] || { echo "tally max: got $got, want 40"; exit 1; }
