package neutral

import "testing"

func TestShorten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in    string
		limit int
		want  string
	}{
		{"", 0, ""},
		{"four", 4, "four"},
		{"fives", 4, "f…"},
		{"aöö", 5, "aöö"},
		{"aööö", 6, "aö…"},
		{"aöööö", 7, "aö…"}, // not inside a character
		{"four", 3, "…"},
		{"four", 0, "…"},
	} {
		if got := Shorten(tt.in, tt.limit); got != tt.want {
			t.Errorf("Shorten(%q, %d) = %q, want %q", tt.in, tt.limit, got, tt.want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	if got, want := Excerpt("  a\tb\r\n\n\x1bc d", 6), "a b…"; got != want {
		t.Errorf("Excerpt = %q, want %q", got, want)
	}
}
