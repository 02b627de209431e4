package github

import (
	"encoding/json"
	"mime"
	"net/url"
	"slices"
	"strings"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker"
)

// readDelivery checks the HMAC-SHA256 that GitHub makes of the body. The signature covers neither a time nor the id of the
// delivery.
func readDelivery(d tracker.Delivery) (tracker.Notice, error) {
	event, signature := d.Header.Get(gh.EventTypeHeader), d.Header.Get(gh.SHA256SignatureHeader)
	if event == "" || signature == "" {
		return tracker.Notice{}, tracker.ErrNoDelivery
	}
	// go-github also takes SHA-1, if the value says so.
	if !strings.HasPrefix(signature, "sha256=") || len(d.Secret) == 0 || gh.ValidateSignature(signature, d.Body, d.Secret) != nil {
		return tracker.Notice{}, tracker.ErrForged
	}
	payload := d.Body
	if kind, _, _ := mime.ParseMediaType(d.Header.Get("Content-Type")); kind == "application/x-www-form-urlencoded" {
		form, err := url.ParseQuery(string(d.Body))
		if err != nil {
			return tracker.Notice{}, tracker.ErrNoDelivery
		}
		payload = []byte(form.Get("payload"))
	}
	var of struct {
		Repository struct {
			FullName string `json:"full_name"`
		} `json:"repository"`
	}
	if json.Unmarshal(payload, &of) != nil {
		return tracker.Notice{}, tracker.ErrNoDelivery
	}
	project, err := ParseRemote(d.Project)
	if err != nil || !strings.EqualFold(of.Repository.FullName, project.String()) {
		return tracker.Notice{}, tracker.ErrOtherProject
	}
	return tracker.Notice{ID: d.Header.Get(gh.DeliveryIDHeader), Wake: slices.Contains(wakingEvents(), event)}, nil
}

// wakingEvents are the events of changes that may make an issue workable, or a request need a follow-up.
func wakingEvents() []string {
	return []string{
		"issues", "issue_comment", "issue_dependencies", "sub_issues", "label", "milestone", "member",
		"pull_request", "pull_request_review", "pull_request_review_comment", "pull_request_review_thread",
		"check_run", "check_suite", "status", "workflow_run", "push",
	}
}
