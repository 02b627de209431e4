package gitlab

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/token"
)

func TestParseRemote(t *testing.T) {
	t.Parallel()
	tests := []struct{ remote, host, path string }{ // an empty host: refused
		{"https://gitlab.com/group/project.git", "gitlab.com", "group/project"},
		{"https://gitlab.com/group/project", "gitlab.com", "group/project"},
		{"https://oauth2:secret@git.example.com/a/b/c/d.git", "git.example.com", "a/b/c/d"},
		{"https://git.example.com:8443/a/b.git/", "git.example.com:8443", "a/b"},
		{"https://git.example.com:443/a/b.git", "git.example.com", "a/b"},
		{"http://127.0.0.1:3000/a/b.git", "127.0.0.1:3000", "a/b"},
		{"git@gitlab.com:group/sub/project.git", "gitlab.com", "group/sub/project"},
		{"git@GitLab.com:group/project", "gitlab.com", "group/project"},
		{"ssh://git@git.example.com:2222/a/b.git", "git.example.com", "a/b"},
		{"ssh://git@altssh.gitlab.com:443/a/b.git", "gitlab.com", "a/b"},
		{"git://git.example.com/a/b.c.git", "git.example.com", "a/b.c"},
		{"  https://gitlab.com/a/b\n", "gitlab.com", "a/b"},
		{"", "", ""},
		{"/srv/git/project.git", "", ""},
		{"../project.git", "", ""},
		{"file:///srv/git/project.git", "", ""},
		{"ext::sh -c evil", "", ""},
		{"https://gitlab.com/project.git", "", ""},
		{"https://gitlab.com/a/../b.git", "", ""},
		{"https://gitlab.com/a/%2e%2e/b", "", ""},
		{"https://gitlab.com//a//b", "", ""},
		{"https://gitlab.com/a/b?c=d", "gitlab.com", "a/b"},
		{"https://user:pass word@gitlab.com/a/b", "", ""},
		{"https://git_lab.com/a/b\x00", "", ""},
		{"https://-evil.com/a/b", "", ""},
		{"git@-evil.com:a/b", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.remote, func(t *testing.T) {
			t.Parallel()
			p, err := ParseRemote(tt.remote)
			switch {
			case tt.host == "" && err == nil:
				t.Errorf("= %+v, want an error", p)
			case tt.host == "":
				if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "pass word") {
					t.Errorf("error is %q", err)
				}
			case err != nil:
				t.Errorf("error %v", err)
			case p.Host != tt.host || p.Path != tt.path:
				t.Errorf("= %+v, want %s and %s", p, tt.host, tt.path)
			}
		})
	}
}

func FuzzParseRemote(f *testing.F) {
	for _, s := range []string{"https://gitlab.com/a/b.git", "git@h:a/b", "ssh://git@h:22/a/b", "https://u:hunter2@h/..", ":/", "a:b:c/d", "0.:0/0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParseRemote(s)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n\x00") {
				t.Errorf("error of %q has more than one line: %q", s, err)
			}
			return
		}
		if p.Host == "" || strings.ContainsAny(p.Host, "/@ ") {
			t.Errorf("ParseRemote(%q) = %+v", s, p)
		}
		again, err := ParseRemote("https://" + p.Host + "/" + p.Path + ".git")
		if err != nil || again.Path != p.Path {
			t.Errorf("ParseRemote(%q) = %+v, and of its plain address %+v, %v", s, p, again, err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := "https://gitlab.com/group/project"
	for want, settings := range map[string]tracker.Settings{
		"want …/GROUP/PROJECT":       {Project: "https://gitlab.com/alone"},
		"want a token source":        {Project: good, MarkerKey: make([]byte, 16)},
		"marker key has 5 bytes":     {Project: good, MarkerKey: []byte("short"), Token: token.Fixed("x")},
		"GitLab: apps cannot log in": {Project: good, MarkerKey: make([]byte, 16), App: &tracker.App{ID: 1}},
	} {
		if _, err := New(forge.Config{Settings: settings}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want %q in it", err, want)
		}
	}
}
