package github

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/tracker"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// Project is a repository on GitHub or a GitHub Enterprise Server.
type Project struct {
	Host  string
	Owner string
	Name  string
}

func (p Project) String() string { return p.Owner + "/" + p.Name }

var (
	ownerName      = pattern.Lazy(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9])?$`)
	repositoryName = pattern.Lazy(`^[A-Za-z0-9._-]{1,100}$`)
)

// ParseRemote finds the project in the address of a git remote. The address does not tell whether its host is a GitHub.
// Errors contain no password.
func ParseRemote(remote string) (Project, error) {
	r, err := tracker.ParseRemote(remote)
	if err != nil {
		return Project{}, fmt.Errorf("find the GitHub project: %w", err)
	}
	if r.Host == "www."+hosted || r.Host == "ssh."+hosted { // SSH over the HTTPS port
		r.Host = hosted
	}
	owner, name, _ := strings.Cut(r.Path, "/")
	if !ownerName().MatchString(owner) || !repositoryName().MatchString(name) || name == "." || name == ".." || name == ".git" {
		return Project{}, errors.New("find the GitHub project in a remote of " + r.Host + ": want …/OWNER/NAME")
	}
	return Project{Host: r.Host, Owner: owner, Name: name}, nil
}
