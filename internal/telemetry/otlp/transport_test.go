package otlp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/sdk/resource"
)

// An entry that is malformed is left out; the others are sent.
func TestMalformedHeadersAreLeftOut(t *testing.T) {
	clean(t)
	url, got, _ := collector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "alone,bad=%zz,=nameless,x-one=1")
	if err := exportSpan(t); err != nil {
		t.Fatal(err)
	}
	h := (<-got).Header
	if h.Get("X-One") != "1" || h.Values("Alone") != nil || h.Values("Bad") != nil {
		t.Errorf("got the headers %v, want x-one alone", h)
	}
}

// A collector that stays busy is asked less and less often, and not before the time that it names.
func TestRetriesWait(t *testing.T) {
	for _, row := range []struct {
		name, retryAfter string
		most             int64
	}{
		{"with pauses that grow", "", 3},
		{"for as long as it says", "60", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			clean(t)
			var attempts atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				attempts.Add(1)
				w.Header().Set("Retry-After", row.retryAfter)
				w.WriteHeader(http.StatusServiceUnavailable)
			}))
			defer s.Close()
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
			t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1600")
			if err := exportSpan(t); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the deadline", err)
			}
			if n := attempts.Load(); n < 1 || n > row.most {
				t.Errorf("got %d attempts, want 1 to %d", n, row.most)
			}
		})
	}
}

func TestCertificates(t *testing.T) {
	clean(t)
	var spans atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) == 1 {
			spans.Add(1)
		}
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	defer s.Close()
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write := func(name, kind string, content []byte) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	certificate, keyFile := write("cert.pem", "CERTIFICATE", s.Certificate().Raw), write("key.pem", "PRIVATE KEY", key)

	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", certificate)
	t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", keyFile)
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", certificate)
	if err := exportSpan(t); err != nil || spans.Load() != 1 {
		t.Errorf("got %v, %d requests with the client's certificate; want one", err, spans.Load())
	}

	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", keyFile)
	if _, err := NewTracer(resource.Empty(), ""); err == nil || !strings.Contains(err.Error(), "has no PEM certificate") {
		t.Errorf("a key in place of the certificate: got %v, want an error that says so", err)
	}
}
