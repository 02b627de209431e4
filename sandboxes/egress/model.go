package egress

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/ralph-pool/ralph/internal/servertools"
)

// Bodies of requests to models are in memory until they are sent. These limits bound the large ones.
const (
	largeBody   = 1 << 20
	largeBodies = 4
)

// filterTools removes tools from a request with which the model's service would access the internet, and returns its whole body.
func (p *Proxy) filterTools(r *http.Request, name string) (body []byte, err error) {
	release := func() {}
	if r.ContentLength < 0 || r.ContentLength > largeBody {
		select {
		case p.largeBodySlots <- struct{}{}:
			release = sync.OnceFunc(func() { <-p.largeBodySlots })
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	body, err = io.ReadAll(r.Body)
	var removed []string
	if err == nil {
		removed, err = servertools.Filter(body)
	}
	var tool *servertools.Error
	switch {
	case errors.As(err, &tool) && tool.Tool == "":
		err = deny(Malformed, "%s", tool)
	case errors.As(err, &tool):
		err = deny(ServerTool, "%s", printable(tool.Error()))
	}
	if err != nil {
		release()
		return nil, p.tooLarge(err)
	}
	for _, tool := range removed {
		p.record.add(refusal{ServerTool, name, 0}, "the definition of "+clip(printable(tool))+" was taken out of a request")
	}
	r.Body = heldBody{bytes.NewReader(body), release}
	return body, nil
}

// heldBody is a body in memory. Close releases its slot.
type heldBody struct {
	io.Reader
	release func()
}

func (b heldBody) Close() error {
	b.release()
	return nil
}

// tooLarge converts the error of a body that is too large to a denial, and returns other errors unchanged.
func (p *Proxy) tooLarge(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return deny(TooManyBytes, "a request has more than %d bytes", p.limits.Request)
	}
	return err
}
