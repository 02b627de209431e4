package github

import (
	"bytes"
	"cmp"
	"encoding/json"
	"mime"
	"slices"
	"strings"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker"
)

// readDelivery verifies GitHub's HMAC-SHA256 of the body. The signature covers neither a time nor the ID of the delivery.
func readDelivery(d tracker.Delivery) (tracker.Notice, error) {
	event, signature := d.Header.Get(gh.EventTypeHeader), d.Header.Get(gh.SHA256SignatureHeader)
	if event == "" {
		return tracker.Notice{}, tracker.ErrNoDelivery
	}
	kind, _, _ := mime.ParseMediaType(d.Header.Get("Content-Type"))
	payload, err := gh.ValidatePayloadFromBody(cmp.Or(kind, "application/json"), bytes.NewReader(d.Body), signature, d.Secret)
	if err != nil || len(d.Secret) == 0 || !strings.HasPrefix(signature, "sha256=") { // go-github also accepts SHA-1
		return tracker.Notice{}, tracker.ErrForged
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

// wakingEvents returns the events after which an issue may be workable or a request may need a follow-up.
func wakingEvents() []string {
	return []string{
		"issues", "issue_comment", "issue_dependencies", "sub_issues", "label", "milestone", "member",
		"pull_request", "pull_request_review", "pull_request_review_comment", "pull_request_review_thread",
		"check_run", "check_suite", "status", "workflow_run", "push",
	}
}
