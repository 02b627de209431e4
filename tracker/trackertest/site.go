package trackertest

import (
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// Forge is a tracker that hosts the code, too.
type Forge interface {
	tracker.Tracker
	tracker.Approver
	tracker.Requester
	tracker.Refuser
	tracker.RequestLister
	tracker.Follower
	tracker.Commander
}

// Person is an account of a forge. Whoever a test names without admitting it is a stranger, who may write nothing but text.
type Person struct {
	Name   string
	ID     int64 // 0: any
	Bot    bool
	Writes bool // may write to the project; else only read
}

// Request is a request as people see it. Of a new one, Number, Labels, Reviewers and Assignees are not used.
type Request struct {
	Number                       int
	By, Head, Base, Title, Body  string // an empty Base is main
	Commit                       string // of the head; empty: any
	State                        string // open (or empty), closed or merged
	Draft, Conflicts             bool
	Failed                       string // the check that has failed, with this name as its log
	Labels, Reviewers, Assignees []string
}

// Site is a fresh project on a forge, or on a fake of it. It does what people do there. Ralph's account and ada may write.
type Site struct {
	Ralph string // the name of ralph's account
	Token string // the tracker's
	// Open makes a tracker of the project, like another process, and closes it with the test.
	Open  func(t *testing.T, edits ...func(*forge.Config)) Forge
	Admit func(Person)
	// HidePeople keeps ralph from listing who may write. It may still ask about one account.
	HidePeople func()

	Issue func(Seed) int
	Label func(by string, issue int, label string, on bool)
	Edit  func(by string, issue int, title, body string) // an empty one stays

	Request  func(Request) int
	Requests func() []Request // oldest first
	Amend    func(request int, change func(*Request))
	// Review asks for changes, Remark starts a thread on a line and returns its id, and Reply adds a comment to it and returns the
	// ID that its command would have. Thread is what was said in it after the first comment.
	Review func(by string, request int, body string)
	Remark func(by string, request int, body string) string
	Reply  func(by string, request int, thread, body string) string
	Thread func(request int, thread string) []string

	// Say adds a comment to an issue or a request, and returns the ID that its command would have.
	Say func(by string, number int, request bool, body string) string
	// Texts are what ralph's account has written there.
	Texts func(number int, request bool) []string
	// React puts an emoji on a comment as ada; Signs are those of ralph's account.
	React func(id, emoji string)
	Signs func(id string) []string
}

// Route is a kind of request to the API: its method, and an expression that its path matches.
type Route struct{ Method, Path string }

func (r Route) matches(c forgetest.Call) bool {
	return c.Method == r.Method && regexp.MustCompile(r.Path).MatchString(c.Path)
}

// Host adapts a forge to the suite of forges.
type Host struct {
	New func(t *testing.T) *Site
	// People matches the paths of requests about people, and PeopleList that of the list of those who may write.
	People, PeopleList string
	AsksBots           bool // the tracker asks about each trusted person whether it is a bot
	// Plain matches the paths of answers that need no form or may be "not found", such as logs, and what a person may do.
	Plain  string
	AtOnce int // requests of ralph's that the tracker looks at side by side
	// Routes are those of the calls at the end of a run; the suite's names are those of [Host.do].
	Routes map[string]Route
}

// RunForge runs the suite of forges, beside [Run] and [RunForgeLarge].
func RunForge(t *testing.T, h Host) {
	h.run(t, map[string]func(*testing.T, Host){
		"CrowdOfReviewers": crowdOfReviewers, "PeopleFail": peopleFail, "PeopleUnknown": peopleUnknown, "Comments": comments,
		"Approved": approved, "TextBeforeLabel": textBeforeLabel, "Taken": taken, "TakenByOutsider": takenByOutsider, "Filters": filters,
		"ReportForged": reportForged, "ReportTwice": reportTwice, "ReportRuns": reportRuns, "ReportTooLong": reportTooLong,
		"OpenRequest": openRequest, "RequestAmongOthers": requestAmongOthers, "RequestUnsure": requestUnsure, "RequestRefused": requestRefused,
		"RequestsOwn": requestsOwn, "FollowUps": followUps, "FollowUpsSideBySide": followUpsSideBySide, "Lies": lies,
		"TokenRefused": tokenRefused, "LateToShow": lateToShow, "LateCalls": lateCalls, "Hanging": hanging, "TokenNotLogged": tokenNotLogged,
		"LeadsElsewhere": leadsElsewhere,
	})
}

// RunForgeLarge runs the cases with many people, issues or rounds, for which the race detector takes long.
func RunForgeLarge(t *testing.T, h Host) {
	h.run(t, map[string]func(*testing.T, Host){
		"CrowdIsCheap": crowdIsCheap, "CrowdBeyondTheCap": crowdBeyondTheCap, "PeopleUnfinished": peopleUnfinished, "Unchanged": unchanged,
		"FaultAtEveryCall": faultAtEveryCall,
	})
}

func (h Host) run(t *testing.T, cases map[string]func(*testing.T, Host)) {
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, h)
		})
	}
}

// wired opens a tracker whose requests pass a wire.
func (s *Site) wired(t *testing.T, edits ...func(*forge.Config)) (Forge, *forgetest.Wire) {
	t.Helper()
	w := forgetest.NewWire(t)
	return s.Open(t, append(edits, func(c *forge.Config) { c.HTTP.Base = w })...), w
}

// about counts the calls about people, and returns the status of the first.
func (h Host) about(calls []forgetest.Call) (n, first int) {
	people := regexp.MustCompile(h.People)
	calls = slices.DeleteFunc(calls, func(c forgetest.Call) bool { return !people.MatchString(c.Path) })
	if len(calls) == 0 {
		return 0, 0
	}
	return len(calls), calls[0].Status
}

// bots is how many questions whether somebody is a bot that many trusted people cost.
func (h Host) bots(trusted int) int {
	if h.AsksBots {
		return trusted
	}
	return 0
}

func key(n int) string { return strconv.Itoa(n) }
