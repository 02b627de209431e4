package graphql

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSchema(t *testing.T) {
	t.Parallel()
	const (
		ready  = `mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{isDraft}}}`
		edits  = `query($n:Int!){repository(owner:"a",name:"b"){issue(number:$n){state lastEditedAt userContentEdits(first:9){nodes{editor{__typename ...on Bot{databaseId}}}}}}}`
		one    = `{"n":1}`
		around = `{"repository":{"issue":{"state":STATE,"lastEditedAt":AT,"userContentEdits":{"nodes":[NODE]}}}}`
	)
	issue := func(state, at, node string) string {
		return strings.NewReplacer("STATE", state, "AT", at, "NODE", node).Replace(around)
	}
	for name, c := range map[string]struct {
		document, variables, data string
		want                      string // part of the problem; empty: none
	}{
		"a mutation":           {ready, `{"id":"PR_1"}`, `{"markPullRequestReadyForReview":{"pullRequest":{"isDraft":false}}}`, ""},
		"null for a payload":   {ready, `{"id":"PR_1"}`, `{"markPullRequestReadyForReview":null}`, ""},
		"a query":              {edits, one, issue(`"OPEN"`, `"2026-01-02T03:04:05Z"`, `{"editor":{"__typename":"Bot","databaseId":7}}`), ""},
		"another actor":        {edits, one, issue(`"OPEN"`, `null`, `{"editor":{"__typename":"User"}},{"editor":null},null`), ""},
		"no such field":        {`{repository(owner:"a",name:"b"){stars}}`, `{}`, `{}`, "stars"},
		"no such mutation":     {strings.Replace(ready, "markPull", "makePull", 1), `{"id":"x"}`, `{}`, "makePull"},
		"no such argument":     {strings.Replace(edits, "first", "top", 1), one, `{}`, "top"},
		"the wrong type":       {strings.Replace(edits, "Int!", "String!", 1), `{"n":"1"}`, `{}`, "$n"},
		"no document":          {`{`, `{}`, `{}`, "Expected"},
		"a variable missing":   {ready, `{}`, `{}`, "must be defined"},
		"a variable's type":    {edits, `{"n":"one"}`, `{}`, "Int"},
		"a variable too many":  {ready, `{"id":"x","extra":1}`, `{}`, "$extra"},
		"a field missing":      {edits, one, `{"repository":{"issue":{"state":"OPEN"}}}`, "is missing"},
		"a field too many":     {ready, `{"id":"x"}`, `{"markPullRequestReadyForReview":null,"rateLimit":null}`, "rateLimit was not asked for"},
		"null":                 {ready, `{"id":"x"}`, `{"markPullRequestReadyForReview":{"pullRequest":{"isDraft":null}}}`, "isDraft: want Boolean!"},
		"another scalar":       {ready, `{"id":"x"}`, `{"markPullRequestReadyForReview":{"pullRequest":{"isDraft":"no"}}}`, "isDraft: want Boolean!"},
		"a time":               {edits, one, issue(`"OPEN"`, `"yesterday"`, ``), "lastEditedAt: want DateTime"},
		"an enumeration":       {edits, one, issue(`"AJAR"`, `null`, ``), "state: want IssueState!"},
		"no actor":             {edits, one, issue(`"OPEN"`, `null`, `{"editor":{"__typename":"Issue"}}`), "is no Actor"},
		"of another actor":     {edits, one, issue(`"OPEN"`, `null`, `{"editor":{"__typename":"User","databaseId":7}}`), "databaseId was not asked for"},
		"a number too large":   {edits, one, issue(`"OPEN"`, `null`, `{"editor":{"__typename":"Bot","databaseId":7000000000}}`), "databaseId: want Int"},
		"an object for a list": {edits, one, strings.Replace(issue(`"OPEN"`, `null`, ``), "[]", "{}", 1), "nodes: want"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var variables map[string]any
			var data any
			for text, v := range map[string]any{c.variables: &variables, c.data: &data} {
				if err := json.Unmarshal([]byte(text), v); err != nil {
					t.Fatal(err)
				}
			}
			op, err := Parse(c.document, variables)
			if err == nil {
				err = op.Answer(data)
			}
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
