got=$(printf '1\n2\n' | sh ./tally json) || exit 1
[ "$got" = "$(printf '[1,2]')" ] || { echo "tally json: got $got, want [1,2]"; exit 1; }
