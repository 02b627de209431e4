// Package access checks the settings that open network and files to a sandbox. Its error messages continue a sentence that begins
// with the value.
package access

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes/egress"
)

// CheckAllow refuses a value that is not an egress rule.
func CheckAllow(s string) error {
	if s == "" {
		return nil
	}
	if strings.Contains(s, "://") {
		if u, err := url.Parse(s); err == nil && u.Host != "" {
			return fmt.Errorf("is a URL, not a host; write %s", u.Host)
		}
		return errors.New("is a URL, not a host")
	}
	if _, err := egress.ParseRule(s); err != nil {
		return fmt.Errorf("is not a host to allow: %s", withoutRule(err.Error()))
	}
	return nil
}

// withoutRule removes the rule from an error message, because the caller's message quotes the value already.
func withoutRule(message string) string {
	rest, ok := strings.CutPrefix(message, "egress rule ")
	if !ok {
		return message
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return message
	}
	return strings.TrimPrefix(rest[len(quoted):], ": ")
}

// CheckMount refuses a mount without host=PATH, or with unknown parts.
func CheckMount(s string) error {
	if s == "" {
		return nil
	}
	named := false
	for part := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "host":
			named = value != ""
		case "inside", "readonly":
		default:
			return fmt.Errorf("is not a mount such as host=/data,inside=/mnt,readonly: %q is none of these", name)
		}
	}
	if !named {
		return errors.New("is not a mount such as host=/data,inside=/mnt,readonly: host is missing")
	}
	return nil
}

// CheckShown refuses a relative path: inside the sandbox it would lead to another place.
func CheckShown(s string) error {
	if s != "" && !filepath.IsAbs(s) {
		return errors.New("is neither an absolute path nor one below the home (~/PATH)")
	}
	return nil
}
