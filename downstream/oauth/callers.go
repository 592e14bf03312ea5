package oauth

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"errors"
)

// ofCaller keeps the tokens of one caller under names of their own. It seals each with its name, so that the text of
// another server or caller is unreadable.
type ofCaller struct {
	keeper
	suffix string // a separator, which no server has in its name, and the caller
	aead   cipher.AEAD
}

// name returns the name of the text of a server.
func (k ofCaller) name(server string) string { return server + k.suffix }

func (k ofCaller) read(server string) ([]byte, error) {
	text, err := k.keeper.read(k.name(server))
	if text == nil || err != nil {
		return text, err
	}
	return k.open(server, text)
}

// open returns the text of a server that write has sealed.
func (k ofCaller) open(server string, sealed []byte) ([]byte, error) {
	n := k.aead.NonceSize()
	if len(sealed) < n {
		return nil, errUnreadable
	}
	text, err := k.aead.Open(nil, sealed[:n], sealed[n:], []byte(k.name(server)))
	if err != nil {
		return nil, errUnreadable
	}
	return text, nil
}

var errUnreadable = errors.New("it was stored with another key; log in again")

func (k ofCaller) write(ctx context.Context, server string, text []byte) error {
	nonce := make([]byte, k.aead.NonceSize(), k.aead.NonceSize()+len(text)+k.aead.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return k.keeper.write(ctx, k.name(server), k.aead.Seal(nonce, nonce, text, []byte(k.name(server))))
}

func (k ofCaller) remove(ctx context.Context, server string) error {
	return k.keeper.remove(ctx, k.name(server))
}

func (k ofCaller) lock(ctx context.Context, server string) (context.Context, func(), error) {
	return k.keeper.lock(ctx, k.name(server))
}

func (k ofCaller) look(server string) version { return k.keeper.look(k.name(server)) }

func (k ofCaller) where(server string) string { return k.keeper.where(k.name(server)) }
