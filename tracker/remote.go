package tracker

import (
	"errors"
	"net/url"
	"strings"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// Remote is the parsed address of a git remote on a server.
type Remote struct {
	Host string // lower-case; includes the port if it is neither 80 nor 443
	Path string // without surrounding slashes and without .git
}

var (
	remoteHost = pattern.Lazy(`^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d{1,5})?$`)
	scpAddress = pattern.Lazy(`^(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9][A-Za-z0-9.-]*):(.*)$`)
)

var (
	errUnreadable = errors.New("the remote's address cannot be read")
	errLocal      = errors.New("the remote is a local path")
)

// ParseRemote parses an HTTP(S), SSH or git URL, or an scp-style address. Its errors contain no password.
func ParseRemote(address string) (Remote, error) {
	address = strings.TrimSpace(address)
	if address == "" || strings.ContainsFunc(address, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return Remote{}, errors.New("the remote has no usable address")
	}
	if !strings.Contains(address, "://") {
		m := scpAddress().FindStringSubmatch(address)
		if m == nil {
			return Remote{}, errLocal
		}
		if !remoteHost().MatchString(m[1]) {
			return Remote{}, errUnreadable
		}
		return remoteOf(m[1], "", m[2]), nil
	}
	u, err := url.Parse(address)
	switch {
	case err == nil && u.Scheme == "file":
		return Remote{}, errLocal
	case err != nil || !remoteHost().MatchString(u.Host): // url.Parse's error would contain the password
		return Remote{}, errUnreadable
	}
	switch u.Scheme {
	case "http", "https":
		return remoteOf(u.Hostname(), u.Port(), u.Path), nil
	case "ssh", "git", "git+ssh", "ssh+git":
		return remoteOf(u.Hostname(), "", u.Path), nil // the SSH port is not the API's port
	}
	return Remote{}, errors.New("the remote's protocol " + u.Scheme + " is not supported")
}

func remoteOf(host, port, path string) Remote {
	r := Remote{Host: strings.ToLower(host), Path: strings.TrimSuffix(strings.Trim(path, "/"), ".git")}
	if port != "" && port != "443" && port != "80" {
		r.Host += ":" + port
	}
	return r
}
