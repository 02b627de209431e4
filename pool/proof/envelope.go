package proof

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

const (
	payloadType   = "application/vnd.in-toto+json"
	maxEnvelope   = 256 << 10 // bytes
	maxSignatures = 16
)

// errUntrusted means that no trusted key has signed.
var errUntrusted = errors.New("no trusted key has signed it")

// sign puts the statement into a signed envelope on one line.
func sign(ctx context.Context, s Statement, key *Key) (string, error) {
	payload, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	signer, err := dsse.NewEnvelopeSigner(key)
	if err != nil {
		return "", err
	}
	envelope, err := signer.SignPayload(ctx, payloadType, payload)
	if err != nil {
		return "", err
	}
	line, err := json.Marshal(envelope)
	if err == nil && len(line) > maxEnvelope {
		err = fmt.Errorf("it would have more than %d KiB", maxEnvelope>>10)
	}
	return string(line), err
}

// open verifies an envelope and returns its statement with the fingerprint of the signing key. It decodes the statement
// only after verifying the signature.
func open(ctx context.Context, line string, keys []PublicKey) (Statement, string, error) {
	if len(line) > maxEnvelope {
		return Statement{}, "", fmt.Errorf("it has more than %d KiB", maxEnvelope>>10)
	}
	var e dsse.Envelope
	if err := strictly([]byte(line), &e); err != nil {
		return Statement{}, "", err
	}
	if e.PayloadType != payloadType || len(e.Signatures) > maxSignatures {
		return Statement{}, "", errors.New("it is an envelope of another kind")
	}
	var verifiers []dsse.Verifier
	for i, k := range keys {
		if !slices.ContainsFunc(keys[:i], func(p PublicKey) bool { return p.Fingerprint == k.Fingerprint }) { // package dsse prints messages about duplicates
			verifiers = append(verifiers, k)
		}
	}
	verifier, err := dsse.NewEnvelopeVerifier(verifiers...)
	if err != nil {
		return Statement{}, "", err
	}
	accepted, payload, err := verifier.VerifyAndDecode(ctx, &e)
	if err != nil {
		return Statement{}, "", errUntrusted
	}
	if base64.StdEncoding.EncodeToString(payload) != e.Payload {
		return Statement{}, "", errors.New("its payload does not have the form that this version writes")
	}
	s, err := decodeStatement(payload)
	return s, accepted[0].KeyID, err
}
