package tracker

import (
	"errors"
	"net/http"
	"time"
)

// Delivery is one request by which a forge tells of a change. Everything in it may be forged until it has been checked.
type Delivery struct {
	Header  http.Header
	Body    []byte // as it came
	Secret  []byte // that the forge and its receiver share; not empty
	Project string // address of the project that the change has to be in, as in [Settings]
	Now     time.Time
}

// Notice is what a genuine delivery says.
type Notice struct {
	ID   string // of the delivery, as the forge names it; may be empty
	Wake bool   // the change may matter to the backlog
}

// The errors of a delivery that is refused. They show nothing of the secret.
var (
	ErrForged       = errors.New("signature or token is missing, or does not match the secret")
	ErrStale        = errors.New("the delivery was signed too long ago, or the clocks differ")
	ErrOtherProject = errors.New("the delivery is of another project")
	ErrNoDelivery   = errors.New("this is no delivery of the project's tracker")
)
