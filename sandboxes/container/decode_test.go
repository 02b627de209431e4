package container

import "testing"

func TestParseUser(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]user{"0": {0, 0}, "1000": {1000, 1000}, "7:8": {7, 8}} {
		if got, err := parseUser(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "root", "1:", ":1", "-1", "1:2:3", "99999999999", "1 "} {
		if got, err := parseUser(bad); err == nil {
			t.Errorf("%q is taken for %v", bad, got)
		}
	}
}

func FuzzParseUser(f *testing.F) {
	f.Add("1000:1000")
	f.Fuzz(func(t *testing.T, text string) {
		if u, err := parseUser(text); err == nil && (u.uid < 0 || u.gid < 0) {
			t.Errorf("user %+v", u)
		}
	})
}
