package gitlab

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Project is a repository on GitLab.
type Project struct {
	Host string // empty: gitlab.com; with the port of HTTPS when it is another than 443
	Path string // with its groups, such as "group/sub-group/project"
}

func (p Project) String() string { return p.Path }

var (
	segment  = regexp.MustCompile(`^[A-Za-z0-9_](?:[A-Za-z0-9_.+-]{0,253}[A-Za-z0-9_+-])?$`)
	hostName = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d{1,5})?$`)
	scpLike  = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9][A-Za-z0-9.-]*):(.*)$`)
)

const maxPath = 1024 // bytes

func (p Project) check() error {
	if p.Host != "" && !hostName.MatchString(p.Host) {
		return fmt.Errorf("use %q as the GitLab host: want a name such as git.example.com", p.Host)
	}
	parts := strings.Split(p.Path, "/")
	if len(parts) < 2 || len(p.Path) > maxPath {
		return fmt.Errorf("use %q as the GitLab project: want GROUP/PROJECT, with all its groups", p.Path)
	}
	for _, s := range parts {
		if !segment.MatchString(s) || strings.HasSuffix(s, ".git") || strings.HasSuffix(s, ".atom") {
			return fmt.Errorf("use %q as the GitLab project: %q is no name of a group or project", p.Path, s)
		}
	}
	return nil
}

// ParseRemote finds the project in the address of a git remote: HTTPS, SSH, git, or scp-like. Whether its host is a
// GitLab is not known from the address, nor the folder below which an instance lives: name the project where there is
// one. Errors show no password.
func ParseRemote(remote string) (Project, error) {
	host, path, err := splitRemote(strings.TrimSpace(remote))
	if err != nil {
		return Project{}, fmt.Errorf("find the GitLab project: %w", err)
	}
	p := Project{Host: host, Path: strings.TrimSuffix(strings.Trim(path, "/"), ".git")}
	if err := p.check(); err != nil {
		return Project{}, fmt.Errorf("find the GitLab project in a remote of %s: want …/GROUP/PROJECT; name it as project", host)
	}
	return p, nil
}

func splitRemote(remote string) (host, path string, err error) {
	if remote == "" || strings.ContainsFunc(remote, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", "", errors.New("the remote has no usable address")
	}
	if !strings.Contains(remote, "://") {
		m := scpLike.FindStringSubmatch(remote)
		if m == nil {
			return "", "", errors.New("the remote is a local path; name it as project")
		}
		return plainHost(m[1], ""), m[2], nil
	}
	u, err := url.Parse(remote)
	if err != nil || !hostName.MatchString(u.Host) { // the parser's error would show the address, and a password in it
		return "", "", errors.New("the remote's address cannot be read")
	}
	switch u.Scheme {
	case "http", "https":
		return plainHost(u.Hostname(), u.Port()), u.Path, nil
	case "ssh", "git", "git+ssh", "ssh+git":
		return plainHost(u.Hostname(), ""), u.Path, nil // the port of SSH is not that of the API
	}
	return "", "", errors.New("a remote by " + u.Scheme + " is no project; name it as project")
}

// plainHost is the host in lower case, without what only some protocols need.
func plainHost(host, port string) string {
	host = strings.ToLower(host)
	if host == "altssh."+hosted || host == "www."+hosted { // SSH over the HTTPS port
		return hosted
	}
	if port != "" && port != "443" && port != "80" {
		host += ":" + port
	}
	return host
}
