// Package identity says in whose name commits are made: author, committer, trailers and signature. Its caller is package
// worktree. Everything here is safe for concurrent use.
package identity

import (
	"cmp"
	"fmt"
	"net/mail"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Identity is in whose name a run's commits are made. With the zero Identity they stay as the agent made them.
type Identity struct {
	Author    Ident   `json:"author,omitzero"`    // zero: the agent's commits keep their author
	Committer Ident   `json:"committer,omitzero"` // zero: Author, or the user where the commits are signed off or signed
	SignOff   bool    `json:"sign_off,omitempty"` // adds a Signed-off-by trailer of the committer
	CoAuthors []Ident `json:"co_authors,omitempty"`
	Sign      Format  `json:"sign,omitempty"` // signs with the user's git settings, on the host
}

// Ident is a name and an e-mail address.
type Ident struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Format is a kind of signature.
type Format string

// The formats; the zero Format signs nothing.
const (
	GPG Format = "gpg"
	SSH Format = "ssh"
)

// Parse reads "Name <mail@example.com>".
func Parse(text string) (Ident, error) {
	a, err := mail.ParseAddress(text)
	if err != nil || a.Name == "" || strings.ContainsAny(a.Name+a.Address, "<>\n\x00") {
		return Ident{}, fmt.Errorf("%q is not of the form: Name <mail@example.com>", text)
	}
	return Ident{a.Name, a.Address}, nil
}

// Of is the user's own name, or ralph's where git knows none.
func Of(user git.Config) (i Ident) {
	i.Name, i.Email = user.Ident()
	return i
}

// String is "Name <mail@example.com>", as git writes it into a commit: without the characters that it takes away.
func (i Ident) String() string { return plain(i.Name) + " <" + plain(i.Email) + ">" }

func plain(s string) string {
	s = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`.,:;<>"\'`, r) })
	return strings.NewReplacer("<", "", ">", "", "\n", "").Replace(s)
}

// IsZero reports that nothing is asked for.
func (i Identity) IsZero() bool {
	return i.Author == Ident{} && i.Committer == Ident{} && !i.SignOff && len(i.CoAuthors) == 0 && i.Sign == ""
}

// NeedsUser reports that the user's own name gets into the commits.
func (i Identity) NeedsUser() bool {
	return cmp.Or(i.Committer, i.Author) == Ident{} && (i.SignOff || i.Sign != "")
}

// For fills in the committer; user is the user's own name.
func (i Identity) For(user Ident) Identity {
	i.Committer = cmp.Or(i.Committer, i.Author)
	if i.NeedsUser() {
		i.Committer = user
	}
	return i
}

// Config is the git configuration by which an agent commits in the name.
func (i Identity) Config(user git.Config) git.Config {
	self := Of(user)
	author := cmp.Or(i.Author, self)
	c := git.Config{{Name: "user.name", Value: author.Name}, {Name: "user.email", Value: author.Email}}
	if who := i.For(self).Committer; who != (Ident{}) && who != author {
		c = append(c, git.Setting{Name: "committer.name", Value: who.Name}, git.Setting{Name: "committer.email", Value: who.Email})
	}
	return c
}

// Env is the environment for that.
func (i Identity) Env() (env []string) {
	i = i.For(Ident{})
	for role, who := range map[string]Ident{"AUTHOR": i.Author, "COMMITTER": i.Committer} {
		if who != (Ident{}) {
			env = append(env, "GIT_"+role+"_NAME="+who.Name, "GIT_"+role+"_EMAIL="+who.Email)
		}
	}
	return env
}

// trailers are the lines that end each message.
func (i Identity) trailers() (lines []string) {
	for _, who := range i.CoAuthors {
		lines = append(lines, "Co-authored-by: "+who.String())
	}
	if i.SignOff {
		lines = append(lines, "Signed-off-by: "+i.Committer.String())
	}
	return lines
}
