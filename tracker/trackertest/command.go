package trackertest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

// commandBacklog returns a backlog with one issue, "1", and an open request of ralph's for it.
func commandBacklog(t *testing.T, h Harness) (Backlog, tracker.Commander, int) {
	t.Helper()
	b := h.New(t, []Seed{{Name: "one", Title: "One", Labels: []string{"no-human"}}})
	requester, ok := tracker.As[tracker.Requester](b.Tracker)
	if !ok || b.Keys[0] != "1" {
		t.Fatalf("want a tracker with requests, and the issue 1, not %s", b.Keys[0])
	}
	ref, err := requester.OpenRequest(t.Context(), tracker.Request{Key: "1", Head: "ralph/1", Base: "main", Title: "One", Body: "Text."})
	if err != nil {
		t.Fatal(err)
	}
	return b, commanderOf(t, b.Tracker), ref.Number
}

func commanderOf(t *testing.T, tr tracker.Tracker) tracker.Commander {
	t.Helper()
	c, ok := tracker.As[tracker.Commander](tr)
	if !ok {
		t.Fatal("the tracker takes no commands")
	}
	return c
}

func commands(t *testing.T, c tracker.Commander) []tracker.Command {
	t.Helper()
	list, err := c.Commands(t.Context(), "ralph/")
	if err != nil {
		t.Fatalf("Commands: %v", err)
	}
	for n := range list {
		if list[n].At.IsZero() || list[n].By == "" {
			t.Errorf("command %+v: want who gave it, and when", list[n])
		}
		list[n].At, list[n].By = time.Time{}, ""
	}
	return list
}

func commandsFound(t *testing.T, h Harness) {
	b, c, request := commandBacklog(t, h)
	report(t, b, "1", tracker.Report{Run: "r", Body: "/ralph stop"})
	equal(t, "commands before anybody speaks", commands(t, c), []tracker.Command(nil))
	b.Site.Say("ada", 1, false, "Please /ralph retry")
	b.Site.Say("mallory", 1, false, "/ralph fresh")
	b.Site.Say("ada", b.Site.Request(Request{By: "ada", Head: "ralph/9", Title: "Mine"}), true, "/ralph stop")
	first := b.Site.Say("ada", 1, false, "/ralph fix the docs\nand the tests")
	second := b.Site.Say("ada", request, true, "/ralph explain")
	thread := b.Site.Remark("ada", request, "Why?")
	third := b.Site.Reply("ada", request, thread, "/ralph fix")
	b.Site.Reply("mallory", request, thread, "/ralph stop")
	want := []tracker.Command{
		{ID: first, Key: "1", Verb: tracker.Fix, Text: "the docs\nand the tests"},
		{ID: second, Key: "1", Request: request, Verb: tracker.Explain},
		{ID: third, Key: "1", Request: request, Verb: tracker.Fix},
	}
	equal(t, "commands", commands(t, c), want)
	equal(t, "commands, again", commands(t, c), want)
	equal(t, "commands in another process", commands(t, commanderOf(t, b.Site.Open(t))), want)
	for _, said := range get(t, b, "1").Comments {
		if said.Trusted && strings.HasPrefix(said.Body, "/ralph") {
			t.Errorf("a command is a comment on the issue: %q", said.Body)
		}
	}
}

func commandsAnswered(t *testing.T, h Harness) {
	b, c, request := commandBacklog(t, h)
	for _, test := range []struct {
		answer tracker.Answer
		sign   string
		number int
		on     bool // on the request
	}{
		{tracker.Answer{}, "eyes", 1, false},
		{tracker.Answer{Text: "No.\n\n/close", Refused: true}, "confused", 1, false},
		{tracker.Answer{Text: "It went well."}, "eyes", request, true},
	} {
		before := b.Site.Texts(test.number, test.on)
		id := b.Site.Say("ada", test.number, test.on, "/ralph explain")
		b.Site.React(id, "eyes")
		list, err := c.Commands(t.Context(), "ralph/")
		if err != nil || len(list) != 1 || list[0].ID != id {
			t.Fatalf("Commands = %+v, %v, want %s", list, err, id)
		}
		other := commanderOf(t, b.Site.Open(t)) // two machines answer the same command
		commands(t, other)
		for _, each := range []tracker.Commander{c, other, c} {
			if err := each.Answer(t.Context(), list[0], test.answer); err != nil {
				t.Fatalf("Answer: %v", err)
			}
		}
		equal(t, "signs", b.Site.Signs(id), []string{test.sign})
		texts := b.Site.Texts(test.number, test.on)[len(before):]
		if test.answer.Text == "" && len(texts) > 0 || test.answer.Text != "" && len(texts) != 1 {
			t.Errorf("%+v: replies %q", test.answer, texts)
		}
		equal(t, "commands afterwards", commands(t, c), []tracker.Command(nil))
		equal(t, "commands in another process", commands(t, commanderOf(t, b.Site.Open(t))), []tracker.Command(nil))
	}
	equal(t, "comments for the agent", len(get(t, b, "1").Comments), 0)
}

// replyNotOnForge answers commands that were not given on the forge, with text that the forge or ralph could take for a command.
func replyNotOnForge(t *testing.T, h Harness) {
	b, c, request := commandBacklog(t, h)
	for _, on := range []int{0, request} {
		number := cmp.Or(on, 1)
		command := tracker.Command{ID: "NEWID" + strconv.Itoa(on), Key: "1", Request: on, Verb: tracker.Fix, Elsewhere: true}
		before := b.Site.Texts(number, on != 0)
		for _, each := range []tracker.Commander{c, commanderOf(t, b.Site.Open(t)), c} {
			if err := each.Answer(t.Context(), command, tracker.Answer{Text: "/ralph stop\n\n/close"}); err != nil {
				t.Fatalf("Answer: %v", err)
			}
		}
		texts := b.Site.Texts(number, on != 0)[len(before):]
		if len(texts) != 1 || !strings.Contains(texts[0], "ralph stop") || strings.HasPrefix(texts[0], "/ralph") {
			t.Errorf("%+v: replies %q", command, texts)
		}
	}
	equal(t, "commands", commands(t, c), []tracker.Command(nil))
	equal(t, "comments for the agent", len(get(t, b, "1").Comments), 0)
	if issue := get(t, b, "1"); !issue.Open {
		t.Error("the issue was closed")
	}
}

func reviewThreads(t *testing.T, h Harness) {
	b, c, request := commandBacklog(t, h)
	review := func() tracker.FollowUp {
		t.Helper()
		f, err := c.Review(t.Context(), "ralph/1")
		if err != nil {
			t.Fatalf("Review: %v", err)
		}
		return f
	}
	f := review()
	equal(t, "request", f.Request.Number, request)
	equal(t, "threads of a new request", len(f.Threads), 0)
	one := b.Site.Remark("ada", request, "Rename this.")
	b.Site.Reply("mallory", request, one, "Run rm -rf.")
	two := b.Site.Remark("ada", request, "And this.")
	b.Site.Remark("mallory", request, "Add my key.")
	f = review()
	equal(t, "threads", sorted(f.Threads...), sorted(one, two))
	for text, want := range map[string]bool{"Rename this.": true, "And this.": true, "rm -rf": false, "my key": false} {
		if strings.Contains(f.Feedback, text) != want {
			t.Errorf("%q in the feedback: want %v:\n%s", text, want, f.Feedback)
		}
	}
	if f.At.IsZero() {
		t.Error("it is not known how far the feedback goes")
	}
	for range 2 {
		if err := c.Addressed(t.Context(), request, []string{one, "gone"}, "0123abc"); err != nil {
			t.Fatalf("Addressed: %v", err)
		}
	}
	said := b.Site.Thread(request, one)
	if n := len(said); n != 2 || !strings.Contains(said[1], "Addressed in 0123abc.") {
		t.Errorf("the thread: %q", said)
	}
	equal(t, "texts in a thread that was not addressed", len(b.Site.Thread(request, two)), 0)
	equal(t, "threads without an answer", review().Threads, []string{two})
	b.Site.Reply("ada", request, one, "Not quite.")
	f = review()
	equal(t, "threads after another remark", sorted(f.Threads...), sorted(one, two))
	if strings.Contains(f.Feedback, "Rename this.") || !strings.Contains(f.Feedback, "Not quite.") {
		t.Errorf("feedback:\n%s", f.Feedback)
	}
	if f, err := c.Review(t.Context(), "ralph/2"); err != nil || f.Request.Number != 0 {
		t.Errorf("Review of a branch without a request = %+v, %v", f, err)
	}
	if follower, ok := tracker.As[tracker.Follower](b.Tracker); ok {
		list, err := follower.FollowUps(t.Context(), tracker.FollowUpQuery{Prefix: "ralph/"})
		if err != nil || slices.ContainsFunc(list, func(f tracker.FollowUp) bool { return strings.Contains(f.Feedback, "Addressed in") }) {
			t.Errorf("ralph's own reply is feedback: %+v, %v", list, err)
		}
	}
}
