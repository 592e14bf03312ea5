package http1

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

const (
	maxShort = 2 << 10 // body size of a request that is written in one piece
	maxKept  = 8 << 10 // size of a buffer that is reused
)

var errBodyLength = errors.New("the body's length differs from Content-Length")

// encoded is a short request in wire format. nil stands for a request that net/http writes.
type encoded struct{ bytes []byte }

var encodings = sync.Pool{New: func() any { return &encoded{make([]byte, 0, 1<<10)} }}

// encode encodes a POST without special settings and with a short body like net/http, except for the order of
// headers. It closes the body. For other requests it returns nil.
func encode(req *http.Request) (*encoded, error) {
	if req.Method != http.MethodPost || req.Body == nil || req.ContentLength <= 0 || req.ContentLength > maxShort ||
		req.Host != req.URL.Host || req.Close || req.TransferEncoding != nil || req.Trailer != nil || !plainHost(req.Host) {
		return nil, nil
	}
	for _, name := range [...]string{"User-Agent", "Host", "Content-Length", "Transfer-Encoding", "Trailer"} {
		if req.Header[name] != nil {
			return nil, nil
		}
	}
	target := req.URL.RequestURI()
	if strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, nil
	}
	e := encodings.Get().(*encoded)
	b := append(e.bytes[:0], "POST "...)
	b = append(b, target...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, req.Host...)
	b = append(b, "\r\nUser-Agent: Go-http-client/1.1\r\nContent-Length: "...)
	b = strconv.AppendInt(b, req.ContentLength, 10)
	b = append(b, "\r\n"...)
	for name, values := range req.Header {
		for _, value := range values {
			b = append(b, name...)
			b = append(b, ": "...)
			b = append(b, value...)
			b = append(b, "\r\n"...)
		}
	}
	b = append(b, "\r\n"...)
	var err error
	e.bytes, err = appendBody(b, req)
	if err != nil {
		e.free()
		return nil, err
	}
	return e, nil
}

// appendBody appends the body and closes it.
func appendBody(b []byte, req *http.Request) ([]byte, error) {
	defer req.Body.Close()
	head, length := len(b), int(req.ContentLength)
	b = append(b, make([]byte, length+1)...) // one more byte detects a longer body
	n, err := io.ReadFull(req.Body, b[head:])
	switch {
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF):
		return b, err
	case n != length:
		return b, errBodyLength
	}
	return b[:head+length], nil
}

// plainHost reports whether a host can be sent without conversion.
func plainHost(host string) bool {
	for i := range len(host) {
		switch c := host[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == ':', c == '_':
		default:
			return false
		}
	}
	return host != ""
}

func (e *encoded) free() {
	if e != nil && cap(e.bytes) <= maxKept {
		encodings.Put(e)
	}
}
