package github

import (
	"strings"
	"testing"
)

func TestParseRemote(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"https://github.com/acme/widgets.git":                "github.com acme/widgets",
		"https://github.com/acme/widgets":                    "github.com acme/widgets",
		"https://github.com/acme/widgets/":                   "github.com acme/widgets",
		"https://user:secret@github.com/acme/widgets.git":    "github.com acme/widgets",
		"https://www.github.com/acme/my.widgets":             "github.com acme/my.widgets",
		"git@github.com:acme/widgets.git":                    "github.com acme/widgets",
		"github.com:acme/widgets":                            "github.com acme/widgets",
		"git@GitHub.com:/acme/widgets.git":                   "github.com acme/widgets",
		"ssh://git@github.com/acme/widgets.git":              "github.com acme/widgets",
		"ssh://git@ssh.github.com:443/acme/widgets.git":      "github.com acme/widgets",
		"git+ssh://git@github.example.org:2222/acme/widgets": "github.example.org acme/widgets",
		"https://github.example.org:8443/acme/widgets.git":   "github.example.org:8443 acme/widgets",
		"org-1234@github.com:acme/widgets.git":               "github.com acme/widgets",
		" https://github.com/acme/widgets.git\n":             "github.com acme/widgets",
		"git://github.com/acme/widgets.git":                  "github.com acme/widgets",
		"":                                                   "",
		"/srv/git/widgets.git":                               "",
		"../widgets":                                         "",
		"file:///srv/git/widgets.git":                        "",
		"https://github.com/acme":                            "",
		"https://github.com/acme/widgets/issues":             "",
		"https://github.com/../widgets":                      "",
		"https://github.com/acme/..":                         "",
		"https://github.com/acme/.git":                       "",
		"https://github.com/-acme/widgets":                   "",
		"https:///acme/widgets":                              "",
		"ext::sh -c evil":                                    "",
		"https://user:secret@github .com/acme/widgets":       "",
		"git@github.com:acme/wid\x00gets":                    "",
	} {
		p, err := ParseRemote(remote)
		got := ""
		if err == nil {
			got = p.Host + " " + p.String()
		}
		if got != want {
			t.Errorf("ParseRemote(%q) = %q, %v; want %q", remote, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("ParseRemote(%q) tells the password: %v", remote, err)
		}
	}
}

func FuzzParseRemote(f *testing.F) {
	for _, s := range []string{"https://github.com/a/b.git", "git@github.com:a/b", "ssh://git@h:22/a/b", "x://y", ":", "a:b/c", "https://u:p@h/a/b", "0.:0/0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, remote string) {
		p, err := ParseRemote(remote)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("error of more than one line: %q", err)
			}
			return
		}
		if !ownerName().MatchString(p.Owner) || !repositoryName().MatchString(p.Name) || strings.Trim(p.Name, ".") == "" || p.Host == "" || strings.ContainsAny(p.Host, "/@ ") {
			t.Fatalf("ParseRemote(%q) = %+v", remote, p)
		}
	})
}
