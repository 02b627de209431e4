package github

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
)

// inspectPermissions compares what is needed with what is there, too little and too much.
func (t *Tracker) inspectPermissions(r repository, head http.Header, e tracker.Expectation) []tracker.Finding {
	if app := t.appSource(); app != nil {
		return []tracker.Finding{inspectGranted(app.minter.grantedNow(), e)}
	}
	f := tracker.Finding{What: "permissions", Severity: tracker.OK, Detail: "enough on the project"}
	switch {
	case e.Push && !r.Permissions.Push:
		f.Severity, f.Detail = tracker.Fail, "may not push to the project"
		f.Mend = "give the account write access, or the token contents and pull requests: write"
	case !r.Permissions.Push && !r.Permissions.Triage:
		f.Severity, f.Detail = tracker.Fail, "may not label issues of the project"
		f.Mend = "give the account triage access, or the token issues: write"
	}
	out := []tracker.Finding{f}
	if _, classic := head["X-Oauth-Scopes"]; !classic {
		return append(out, tracker.Finding{What: "token", Severity: tracker.OK,
			Detail: "fine-grained; GitHub does not tell what it may do"})
	}
	return append(out, inspectScopes(head.Get("X-OAuth-Scopes"), r.Private))
}

// inspectScopes judges a classic token.
func inspectScopes(header string, private bool) tracker.Finding {
	var have, excess []string
	for s := range strings.SplitSeq(header, ",") {
		if s = strings.TrimSpace(s); s != "" {
			have = append(have, s)
		}
	}
	f := tracker.Finding{What: "token", Severity: tracker.OK, Detail: "classic, with scopes " + strings.Join(have, ", ")}
	if !slices.Contains(have, "repo") && (private || !slices.Contains(have, "public_repo")) {
		f.Severity, f.Detail = tracker.Fail, "classic, lacks the scope repo; it has: "+cmp.Or(strings.Join(have, ", "), "none")
		f.Mend = "make a fine-grained token with issues, pull requests and contents: write"
		return f
	}
	for _, s := range have {
		if s == "workflow" || s == "delete_repo" || s == "site_admin" || strings.HasPrefix(s, "admin:") || strings.HasPrefix(s, "write:packages") {
			excess = append(excess, s)
		}
	}
	if len(excess) > 0 {
		f.Severity, f.Detail = tracker.Warn, "classic, may more than ralph needs: "+strings.Join(excess, ", ")
		f.Mend = "make a fine-grained token for this project with issues, pull requests and contents: write"
	}
	return f
}

// inspectGranted judges what an app's installation may do.
func inspectGranted(granted map[string]string, e tracker.Expectation) tracker.Finding {
	need := map[string]string{"issues": "write", "metadata": "read"}
	if e.Push {
		need["contents"], need["pull_requests"], need["checks"], need["statuses"] = "write", "write", "read", "read"
	}
	var lacks, excess []string
	for name, level := range need {
		if have := granted[name]; have == "" || (level == "write" && have == "read") {
			lacks = append(lacks, name+": "+level)
		}
	}
	for name, level := range granted {
		switch name {
		case "workflows", "administration", "secrets", "members", "environments", "repository_hooks":
			if level != "read" {
				excess = append(excess, name+": "+level)
			}
		}
	}
	slices.Sort(lacks)
	slices.Sort(excess)
	f := tracker.Finding{What: "permissions", Severity: tracker.OK, Detail: "the app has what it needs"}
	switch {
	case len(lacks) > 0:
		f.Severity, f.Detail = tracker.Fail, "the app lacks "+strings.Join(lacks, ", ")
		f.Mend = "grant them in the app's settings and accept them in the installation"
	case len(excess) > 0:
		f.Severity, f.Detail = tracker.Warn, "the app may more than ralph needs: "+strings.Join(excess, ", ")
		f.Mend = "take them away in the app's settings"
	}
	return f
}
