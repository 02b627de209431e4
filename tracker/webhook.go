package tracker

import (
	"errors"
	"net/http"
	"time"
)

// Delivery is one webhook request of a forge. Everything in it may be forged until it has been checked.
type Delivery struct {
	Header  http.Header
	Body    []byte // unmodified
	Secret  []byte // shared by the forge and the receiver; not empty
	Project string // address of the expected project, as in [Settings]
	Now     time.Time
}

// Notice is the content of a genuine delivery.
type Notice struct {
	ID   string // the forge's ID of the delivery; may be empty
	Wake bool   // the change may matter to the backlog
}

// The errors for a rejected delivery. They contain nothing of the secret.
var (
	ErrForged       = errors.New("signature or token is missing, or does not match the secret")
	ErrStale        = errors.New("the delivery was signed too long ago, or the clocks differ")
	ErrOtherProject = errors.New("the delivery is for another project")
	ErrNoDelivery   = errors.New("the delivery is not from the project's tracker")
)
