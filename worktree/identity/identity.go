// Package identity makes commits carry the names that the user asks for: author, committer, trailers and signature. Its
// caller is package worktree. It is safe for concurrent use.
package identity

import (
	"cmp"
	"fmt"
	"net/mail"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Identity says in whose name a run's commits are made. The zero Identity leaves them as the agent made them.
type Identity struct {
	Author    Ident   `json:"author,omitzero"`    // zero: the author stays
	Committer Ident   `json:"committer,omitzero"` // zero: Author, or the user if the commits are signed off or signed
	SignOff   bool    `json:"sign_off,omitempty"` // add a Signed-off-by trailer of the committer
	CoAuthors []Ident `json:"co_authors,omitempty"`
	Sign      Format  `json:"sign,omitempty"` // sign with the user's git settings, on the host
}

// Ident is a name and an e-mail address.
type Ident struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Format is a kind of signature.
type Format string

// The formats; the zero Format means no signature.
const (
	GPG Format = "gpg"
	SSH Format = "ssh"
)

// Parse parses "Name <mail@example.com>".
func Parse(text string) (Ident, error) {
	a, err := mail.ParseAddress(text)
	if err != nil || a.Name == "" || strings.ContainsAny(a.Name+a.Address, "<>\n\x00") {
		return Ident{}, fmt.Errorf("%q is not of the form: Name <mail@example.com>", text)
	}
	return Ident{a.Name, a.Address}, nil
}

// UserOrRalph returns the user's own name, or ralph's if git knows none.
func UserOrRalph(user git.Config) (i Ident) {
	i.Name, i.Email = user.Ident()
	return i
}

// String returns "Name <mail@example.com>" as git writes it into a commit, without the characters that git strips.
func (i Ident) String() string { return stripped(i.Name) + " <" + stripped(i.Email) + ">" }

var unfit = strings.NewReplacer("<", "", ">", "", "\n", "") //nolint:gochecknoglobals // compiled on first use; nothing writes to it

func stripped(s string) string {
	s = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`.,:;<>"\'`, r) })
	return unfit.Replace(s)
}

// IsZero reports whether nothing is asked for.
func (i Identity) IsZero() bool {
	return i.Author == Ident{} && i.Committer == Ident{} && !i.SignOff && len(i.CoAuthors) == 0 && i.Sign == ""
}

// NeedsUser reports whether commits will contain the user's own name.
func (i Identity) NeedsUser() bool {
	return cmp.Or(i.Committer, i.Author) == Ident{} && (i.SignOff || i.Sign != "")
}

// For returns the identity with its committer filled in; user is the user's own name.
func (i Identity) For(user Ident) Identity {
	i.Committer = cmp.Or(i.Committer, i.Author)
	if i.NeedsUser() {
		i.Committer = user
	}
	return i
}

// Config returns the git configuration that makes an agent commit in this name.
func (i Identity) Config(user git.Config) git.Config {
	self := UserOrRalph(user)
	author := cmp.Or(i.Author, self)
	c := git.Config{{Name: "user.name", Value: author.Name}, {Name: "user.email", Value: author.Email}}
	if who := i.For(self).Committer; who != (Ident{}) && who != author {
		c = append(c, git.Setting{Name: "committer.name", Value: who.Name}, git.Setting{Name: "committer.email", Value: who.Email})
	}
	return c
}

// Env returns environment variables with the same effect as Config.
func (i Identity) Env() (env []string) {
	i = i.For(Ident{})
	for role, who := range map[string]Ident{"AUTHOR": i.Author, "COMMITTER": i.Committer} {
		if who != (Ident{}) {
			env = append(env, "GIT_"+role+"_NAME="+who.Name, "GIT_"+role+"_EMAIL="+who.Email)
		}
	}
	return env
}

// trailers returns the trailer lines of each message.
func (i Identity) trailers() (lines []string) {
	for _, who := range i.CoAuthors {
		lines = append(lines, "Co-authored-by: "+who.String())
	}
	if i.SignOff {
		lines = append(lines, "Signed-off-by: "+i.Committer.String())
	}
	return lines
}
