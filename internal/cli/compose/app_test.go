package compose

import (
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/config"
)

func TestStateDir(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env        []string
		flag, want string
	}{
		{env: []string{"HOME=/h"}, want: "/h/.local/state/ralph"},
		{env: []string{"HOME=/h", "XDG_STATE_HOME=/s"}, want: "/s/ralph"},
		{env: []string{"HOME=/h", "XDG_STATE_HOME=s"}, want: "/h/.local/state/ralph"},
		{env: []string{"HOME=/h"}, flag: "/d", want: "/d"},
		{want: ""},
	} {
		a := New(Host{Env: c.env})
		got, err := a.StateDir(config.Config{StateDir: c.flag})
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%v %s: %s, %v", c.env, c.flag, got, err)
		}
		if got != "" && !filepath.IsAbs(got) {
			t.Errorf("%s is not absolute", got)
		}
	}
}
