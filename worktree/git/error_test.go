package git

import (
	"strings"
	"testing"
)

// A remote's message about a push becomes one line of limited length without control characters.
func TestSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ stderr, want string }{
		"nothing":       {"error: failed to push some refs to 'x'\n", ""},
		"a rule":        {"remote: error: GH013: Rules.        \nremote: \nremote: - Sign\tit.\x1b[31m\nTo x\n", "GH013: Rules.; - Sign it.?[31m"},
		"decoration":    {"remote: ========================\nremote: Resolving deltas: 100% (1/1)\nremote: GitLab: no.\n", "GitLab: no."},
		"many lines":    {strings.Repeat("remote: x\n", 100), strings.Repeat("x; ", 20) + "…"},
		"a long line":   {"remote: " + strings.Repeat("é", 2000), strings.Repeat("é", 750) + "…"},
		"another's way": {"remotely: x\n remote: y", "y"},
	} {
		if got := (&Error{Stderr: c.stderr}).remoteMessage(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A killed git may have printed only a hint.
func TestErrorReason(t *testing.T) {
	t.Parallel()
	for stderr, want := range map[string]string{
		"hint: grafts are deprecated\nhint: use replace\n": "git x: exit status 137",
		"To x\nhint: see\nhint:\n":                         "git x: To x",
		"hint:\n":                                          "git x: exit status 137",
		"hint: a\nfatal: b\nhint: c\n":                     "git x: b",
		"some words\nhint: c\n":                            "git x: some words",
		"ssh: no such host\r\nfatal: Could not read from remote repository.\n\nPlease make sure\n": "git x: ssh: no such host",
		"fatal: Could not read from remote repository.\n":                                          "git x: Could not read from remote repository.",
	} {
		if got := (&Error{Args: []string{"-c", "a=b", "x", "-c"}, ExitCode: 137, Stderr: stderr}).Error(); got != want {
			t.Errorf("%q: %q, want %q", stderr, got, want)
		}
	}
}
