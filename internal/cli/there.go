package cli

import (
	"errors"
	"net/http"
	"strings"

	"github.com/ralph-pool/ralph/internal/attach"
	"github.com/ralph-pool/ralph/internal/cli/config"
)

// service is a client of the service at an address, with the token that it asks for.
func (a *app) service(address, tokenFile string) (*attach.Service, error) {
	token, err := a.listenToken(tokenFile)
	if err != nil {
		return nil, err
	}
	if socket, is := strings.CutPrefix(address, "unix:"); is {
		address = "unix:" + a.expand(a.host.Dir, socket)
	}
	s, err := attach.NewService(address, token)
	if err != nil {
		return nil, usagef("%w; give HOST:PORT, http://HOST:PORT or unix:PATH", err)
	}
	return s, nil
}

// refused says what to do about an answer of a service. Other errors stay as they are.
func (a *app) refused(err error) error {
	answer, is := errors.AsType[*attach.RefusedError](err)
	if !is {
		return err
	}
	answer.Detail = cleanLine(answer.Detail)
	if answer.Code == http.StatusUnauthorized {
		return &exitError{status: exitUsage, err: err, hint: "give --listen-token-file FILE or " + config.ListenTokenVariable}
	}
	return err
}
