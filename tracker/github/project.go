package github

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Project is a repository on GitHub or a GitHub Enterprise Server.
type Project struct {
	Host  string // empty: github.com
	Owner string
	Name  string
}

func (p Project) String() string { return p.Owner + "/" + p.Name }

var (
	ownerName      = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9])?$`)
	repositoryName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
	hostName       = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d{1,5})?$`)
	scpLike        = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9][A-Za-z0-9.-]*):(.*)$`)
)

// ParseRemote finds the project in the address of a git remote: HTTPS, SSH, git, or scp-like. Whether its host is a
// GitHub is not known from the address. Errors show no password.
func ParseRemote(remote string) (Project, error) {
	host, path, err := splitRemote(strings.TrimSpace(remote))
	if err != nil {
		return Project{}, err
	}
	path = strings.Trim(path, "/")
	path = strings.TrimSuffix(path, ".git")
	owner, name, ok := strings.Cut(path, "/")
	if !ok || !ownerName.MatchString(owner) || !repositoryName.MatchString(name) || name == "." || name == ".." || name == ".git" {
		return Project{}, fmt.Errorf("find the GitHub project in remote %s: want …/OWNER/NAME; name it as project", host+"/…")
	}
	return Project{Host: host, Owner: owner, Name: name}, nil
}

func splitRemote(remote string) (host, path string, err error) {
	if remote == "" || strings.ContainsFunc(remote, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", "", fmt.Errorf("find the GitHub project: the remote has no usable address")
	}
	if !strings.Contains(remote, "://") {
		m := scpLike.FindStringSubmatch(remote)
		if m == nil {
			return "", "", fmt.Errorf("find the GitHub project: the remote is a local path; name it as project")
		}
		return plainHost(m[1], ""), m[2], nil
	}
	u, err := url.Parse(remote)
	if err != nil || !hostName.MatchString(u.Host) { // the parser's error would show the address, and a password in it
		return "", "", fmt.Errorf("find the GitHub project: the remote's address cannot be read")
	}
	switch u.Scheme {
	case "http", "https":
		return plainHost(u.Hostname(), u.Port()), u.Path, nil
	case "ssh", "git", "git+ssh", "ssh+git":
		return plainHost(u.Hostname(), ""), u.Path, nil // the port of SSH is not that of the API
	}
	return "", "", fmt.Errorf("find the GitHub project: a remote by %s is no project; name it as project", u.Scheme)
}

// plainHost is the host in lower case, without what only some protocols need.
func plainHost(host, port string) string {
	host = strings.ToLower(host)
	switch host {
	case "www." + hosted, "ssh." + hosted: // SSH over the HTTPS port
		return hosted
	}
	if port != "" && port != "443" && port != "80" {
		host += ":" + port
	}
	return host
}
