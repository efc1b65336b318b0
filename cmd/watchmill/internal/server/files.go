package server

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/draft"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/serve"
)

// maxFile is the most bytes that a file of tokens or of certificates may have.
const maxFile = 8 << 20

// readUpTo reads the first bytes of a file, or all of it if it has no more.
func readUpTo(name string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

// readFile reads a file of at most maxFile bytes: a device may have no end.
func readFile(name string) ([]byte, error) {
	text, err := readUpTo(name, maxFile+1)
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	return text, err
}

// readTokens reads a token file in the format of the API server: lines of token, user,
// uid and, in quotes, groups. It also returns the first token.
func readTokens(name string) (users map[string]serve.User, first string, err error) {
	wrong := func(problem string) error { return &engine.ConfigError{Field: "--token-file", Problem: problem} }
	text, err := readFile(name)
	if err != nil {
		return nil, "", wrong("cannot be read: " + err.Error())
	}
	reader := csv.NewReader(bytes.NewReader(text))
	reader.FieldsPerRecord, reader.Comment, reader.TrimLeadingSpace = -1, '#', true
	lines, err := reader.ReadAll()
	if err != nil {
		return nil, "", wrong("does not parse: write lines of token,user,uid,\"group1,group2\"")
	}
	users = map[string]serve.User{}
	for i, line := range lines {
		if len(line) < 2 || line[0] == "" || line[1] == "" {
			return nil, "", wrong(fmt.Sprintf("has no token and user in record %d: write lines of token,user,uid,\"group1,group2\"", i+1))
		}
		if strings.TrimSpace(line[0]) != line[0] {
			return nil, "", wrong(fmt.Sprintf("has a token that ends with a blank in record %d, which no request can have: leave the blank out", i+1))
		}
		if _, twice := users[line[0]]; twice {
			return nil, "", wrong(fmt.Sprintf("has the token of record %d twice: give each user another token", i+1))
		}
		users[line[0]] = userOf(line)
	}
	if len(lines) == 0 {
		return nil, "", wrong("has no token, so that every request would be refused: write lines of token,user,uid,\"group1,group2\"")
	}
	return users, lines[0][0], nil
}

// userOf returns the user of a line of token, user, uid and groups, of which the last two may be missing.
func userOf(line []string) serve.User {
	user := serve.User{Name: line[1]}
	if len(line) > 2 {
		user.UID = line[2]
	}
	if len(line) > 3 && line[3] != "" {
		user.Groups = strings.Split(line[3], ",")
	}
	return user
}

// readPair reads a certificate and its key in PEM.
func readPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := readFile(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readFile(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// readAuthorities reads a file of certificates in PEM, which a flag names. It refuses a file if any of them cannot be
// parsed, since whatever that authority signs would only see its handshakes fail.
func readAuthorities(flag, name string) ([]*x509.Certificate, error) {
	wrong := func(problem string) error { return &engine.ConfigError{Field: flag, Problem: problem} }
	text, err := readFile(name)
	if err != nil {
		return nil, wrong("cannot be read: " + err.Error())
	}
	var all []*x509.Certificate
	n := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		n++
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, wrong(fmt.Sprintf("has a block %d, %s, that is not a certificate: %v", n, block.Type, err))
		}
		all = append(all, authority)
	}
	if begun := bytes.Count(text, []byte("-----BEGIN ")); n == 0 || n < begun {
		return nil, wrong(fmt.Sprintf("has %d blocks of PEM of which %d can be read: give whole certificates", begun, n))
	}
	return all, nil
}

// kubeconfigMark is the first line of a kubeconfig that the command may overwrite.
const kubeconfigMark = "# Written by watchmill serve.\n"

// mayWriteKubeconfig returns an error if a kubeconfig cannot be written to the named file, or
// if that is a file that the command has not written. A missing name is not an error.
func mayWriteKubeconfig(name string) error {
	if name == "" {
		return nil
	}
	if draft.Special(name) { // a pipe would keep the server waiting
		return &engine.ConfigError{Field: "--kubeconfig", Problem: fmt.Sprintf("is %s, which is not a regular file; give a new file", name)}
	}
	before, err := readUpTo(name, int64(len(kubeconfigMark)))
	if err == nil && !bytes.HasPrefix(before, []byte(kubeconfigMark)) {
		return &engine.ConfigError{Field: "--kubeconfig", Problem: fmt.Sprintf("is %s, which exists and was not written by watchmill serve; give a new file", name)}
	}
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = draft.Check(name)
	}
	return unwritten("--kubeconfig", err)
}

// unwritten returns the error of writing the file of a flag with that flag; nil for nil. It is wrong
// usage, unless it is the disk's.
func unwritten(flag string, err error) error {
	switch {
	case err == nil:
		return nil
	case draft.OfDisk(err):
		return fmt.Errorf("%s cannot be written: %w", flag, err)
	}
	return &engine.ConfigError{Field: flag, Problem: "cannot be written: " + err.Error()}
}

// writeKubeconfig writes a kubeconfig for the server, which has these certificates. It does not
// overwrite a file that the command has not written. After an error the file is as it was.
func writeKubeconfig(name, url, token string, chain [][]byte) error {
	if err := mayWriteKubeconfig(name); err != nil {
		return err
	}
	cluster := map[string]any{"server": url}
	var certificates []byte // alone: their file may have the key, too
	for _, one := range chain {
		certificates = append(certificates, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one})...)
	}
	if len(chain) > 0 {
		cluster["certificate-authority-data"] = base64.StdEncoding.EncodeToString(certificates)
	} else {
		cluster["insecure-skip-tls-verify"] = true // Kubernetes' client for JavaScript refuses http without it
	}
	user := map[string]any{}
	if token != "" {
		user["token"] = token
	}
	const us = "watchmill"
	text, err := json.MarshalIndent(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": us,
		"clusters": []any{map[string]any{"name": us, "cluster": cluster}},
		"users":    []any{map[string]any{"name": us, "user": user}},
		"contexts": []any{map[string]any{"name": us, "context": map[string]any{"cluster": us, "user": us, "namespace": "default"}}},
	}, "", "  ")
	if err != nil {
		return err
	}
	return unwritten("--kubeconfig", replaceFile(name, slices.Concat([]byte(kubeconfigMark), text, []byte("\n"))))
}

// replaceFile writes a file that only its owner may read. After an error the file is as it was.
func replaceFile(name string, text []byte) error {
	d, err := draft.NewFile(name, 0o600)
	if err != nil {
		return err
	}
	defer d.Discard()
	if _, err := d.Write(text); err != nil {
		return err
	}
	return d.Publish()
}
