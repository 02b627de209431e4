package sandboxtest

import (
	"github.com/ralph-pool/ralph/sandboxes"
)

var environmentCases = map[string]func(*suite){
	"env/command over spec, later over earlier": func(s *suite) {
		r := s.open("A=spec", "B=first", "B=spec", "C=spec", "PWD=/elsewhere")
		cmd, out, _ := sh(`printf '%s|%s|%s|%s' "$A" "$B" "$C" "$D"`)
		cmd.Env = []string{"A=old", "A=command", "C=", "D=x=y\nz ü"}
		r.expectExit(cmd, sandboxes.Exit{})
		if want := "command|spec||x=y\nz ü"; out.String() != want {
			s.Errorf("sees %q, want %q", out, want)
		}
	},
	"env/one command's is not the next one's": func(s *suite) {
		r := s.open("A=spec")
		cmd, _, _ := sh("exit 0")
		cmd.Env = []string{"A=command", "B=command"}
		r.expectExit(cmd, sandboxes.Exit{})
		if got := r.text(`printf '%s|%s' "$A" "${B-unset}"`); got != "spec|unset" {
			s.Errorf("sees %q", got)
		}
	},
	"env/has a PATH": func(s *suite) {
		if s.open().text(`printf %s "$PATH"`) == "" {
			s.Error("PATH is empty")
		}
	},
	"env/host's": func(s *suite) {
		r := s.open()
		for _, name := range s.options.Denied {
			if got := r.text(`eval "printf %s \"\${$1-unset}\""`, name); got != "unset" {
				s.Errorf("%s is visible inside", name)
			}
		}
		for _, entry := range s.options.Inherited {
			if got := r.text(`env | grep -Fxc -- "$1" || true`, entry); got != "1\n" {
				s.Errorf("%s is not visible inside", entry)
			}
		}
	},
	"env/naming a denied one gives it": func(s *suite) {
		for _, name := range s.options.Denied {
			r := s.open(name + "=given")
			if got := r.text(`eval "printf %s \"\$$1\""`, name); got != "given" {
				s.Errorf("%s is %q", name, got)
			}
		}
	},
}
