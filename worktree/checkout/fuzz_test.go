package checkout

import "testing"

func FuzzParse(f *testing.F) {
	f.Add("worktree /a\x00HEAD x\x00branch refs/heads/main\x00\x00worktree /b\x00locked why\x00\x00")
	f.Fuzz(func(t *testing.T, out string) {
		for _, c := range parse(out) {
			if c.GitDir != "" || len(c.Begun) > 0 {
				t.Errorf("%+v", c)
			}
		}
	})
}
