package dashboard

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// personName is the name in the journal for actions on the pages.
const personName = "a person on the dashboard"

// formAction performs the action of a form and redirects to the page that contained it. The form must include the secret of these
// pages, and the browser must report that it was sent from them.
func (p *Pages) formAction(do func(r *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !p.ownForm(r) {
			return errForm
		}
		if err := do(r); err != nil {
			return err
		}
		p.boards.stale(r.PathValue("project"))
		http.Redirect(w, r, Local(r.PostFormValue("back")), http.StatusSeeOther)
		return nil
	}
}

// ownForm reports whether the form is from these pages and was not sent by a page of another site.
func (p *Pages) ownForm(r *http.Request) bool {
	return new(http.CrossOriginProtection).Check(r) == nil && subtle.ConstantTimeCompare([]byte(r.PostFormValue("form")), []byte(p.Form)) == 1
}

func (p *Pages) pause(r *http.Request) error {
	return p.Service.Pause(r.PathValue("project"), true, personName)
}

func (p *Pages) resume(r *http.Request) error {
	return p.Service.Pause(r.PathValue("project"), false, personName)
}

// stop ends the run that the page showed. By now the issue may have another run, which must not be stopped.
func (p *Pages) stop(r *http.Request) error {
	run := r.PostFormValue("run")
	if run == "" {
		return errForm
	}
	return p.Service.Stop(r.Context(), r.PathValue("project"), r.PathValue("key"), run)
}

func (p *Pages) retry(r *http.Request) error {
	return p.Service.Retry(r.Context(), r.PathValue("project"), r.PathValue("key"), personName, false)
}

func (p *Pages) fresh(r *http.Request) error {
	return p.Service.Retry(r.Context(), r.PathValue("project"), r.PathValue("key"), personName, true)
}

// fix requests another run with a comment, on a line of the diff or on the whole.
func (p *Pages) fix(r *http.Request) error {
	text := strings.TrimSpace(r.PostFormValue("text"))
	file, at := line(r.PostFormValue("file")), r.PostFormValue("line")
	if n, err := strconv.Atoi(at); err == nil && file != "" && text != "" {
		text = fmt.Sprintf("In %q, line %d: %s", file, n, text)
	}
	return p.Service.Fix(r.Context(), r.PathValue("project"), r.PathValue("key"), personName, text)
}
