package corekinds_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/serve/corekinds"
)

const (
	configMaps = "/api/v1/namespaces/default/configmaps"
	secrets    = "/api/v1/namespaces/default/secrets"
)

func TestConfigMap_IsWrittenInEveryWay(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	c.must(201, "POST", configMaps, message(t, "v1", "ConfigMap", &core.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"x": "1"}, BinaryData: map[string][]byte{"b": {0, 255}},
	}), "Content-Type", "application/vnd.kubernetes.protobuf")
	c.must(200, "PATCH", configMaps+"/a", `{"data":{"y":"2"}}`, "Content-Type", strategic)
	c.must(200, "PATCH", configMaps+"/a", `{"data":{"x":null}}`, "Content-Type", merge)
	c.must(200, "PATCH", configMaps+"/a", `[{"op":"add","path":"/data/z","value":"3"}]`, "Content-Type", "application/json-patch+json")
	applied := c.must(200, "PATCH", configMaps+"/a?fieldManager=me", `{"apiVersion":"v1","kind":"ConfigMap","data":{"w":"4"}}`, "Content-Type", apply)
	require.Equal(t, map[string]any{"w": "4", "y": "2", "z": "3"}, applied["data"])
	require.Equal(t, map[string]any{"b": "AP8="}, applied["binaryData"])
	c.must(409, "PATCH", configMaps+"/a?fieldManager=other", `{"apiVersion":"v1","kind":"ConfigMap","data":{"w":"5"}}`, "Content-Type", apply)
	names, cells := c.rows(configMaps)
	require.Equal(t, []string{"Name", "Data", "Age"}, names)
	require.Equal(t, []any{"a", 4.0}, cells[0][:2])
	require.Empty(t, c.must(200, "DELETE", configMaps+"/a", "")["items"])
}

func TestConfigMap_WhatKubernetesRefuses(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	for told, data := range map[string]string{
		`data[a/b]: Invalid value`:  `"data":{"a/b":"1"}`,
		`binaryData[..]: Invalid`:   `"binaryData":{"..":"AA=="}`,
		"duplicate of key present":  `"data":{"a":"1"},"binaryData":{"a":"AA=="}`,
		"may not be more than 1048": fmt.Sprintf(`"data":{"a":%q},"binaryData":{"b":"AAAA"}`, strings.Repeat("x", core.MaxSecretSize-2)),
	} {
		require.Contains(t, c.refused("POST", configMaps, `{"metadata":{"name":"a"},`+data+`}`), told)
	}
	c.must(201, "POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"a"},"data":{"a":%q},"binaryData":{"b":"AAAA"}}`, strings.Repeat("x", core.MaxSecretSize-3)))
	c.must(400, "POST", configMaps, `{"metadata":{"name":"b"},"data":{"a":1}}`)
}

// What is immutable stays so, but for its metadata.
func TestImmutable_DataStays(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	for _, path := range []string{configMaps, secrets} {
		one := path + "/a"
		c.must(201, "POST", path, `{"metadata":{"name":"a"},"immutable":true,"data":{"x":"AAAA"}}`)
		for _, patch := range []string{`{"immutable":false}`, `{"immutable":null}`, `{"data":{"x":"AAAB"}}`, `{"data":{"y":"AAAB"}}`} {
			require.Contains(t, c.refused("PATCH", one, patch, "Content-Type", merge), "field is immutable when `immutable` is set")
		}
		c.must(200, "PATCH", one, `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", merge)
	}
	c.must(201, "POST", configMaps, `{"metadata":{"name":"b"},"immutable":true}`)
	require.Contains(t, c.refused("PATCH", configMaps+"/b", `{"binaryData":{"x":"AAAA"}}`, "Content-Type", merge), "binaryData: Forbidden")
}

func TestSecret_StringDataIsForWritersAlone(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	made := c.must(201, "POST", secrets, `{"metadata":{"name":"a"},"data":{"a":"MQ==","b":"Mg=="},"stringData":{"b":"3","c":"4"}}`)
	require.Equal(t, map[string]any{"a": "MQ==", "b": "Mw==", "c": "NA=="}, made["data"])
	require.NotContains(t, made, "stringData")
	require.Equal(t, "Opaque", made["type"])
	for patch, media := range map[string]string{`{"stringData":{"d":"5"}}`: merge, `{"stringData":{"e":"6"}}`: strategic} {
		require.NotContains(t, c.must(200, "PATCH", secrets+"/a", patch, "Content-Type", media), "stringData")
	}
	now := c.must(200, "GET", secrets+"/a", "")
	require.Equal(t, map[string]any{"a": "MQ==", "b": "Mw==", "c": "NA==", "d": "NQ==", "e": "Ng=="}, now["data"])
	names, cells := c.rows(secrets)
	require.Equal(t, []string{"Name", "Type", "Data", "Age"}, names)
	require.Equal(t, []any{"a", "Opaque", 5.0}, cells[0][:3])
}

// Of the value that a program gives, and of the stored one, nothing is changed.
func TestSecret_DataOfOthersIsLeftAlone(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	given := core.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Data: map[string][]byte{"x": {1}}, StringData: map[string]string{"y": "2"}}
	made, err := c.kinds.Secrets().Create(t.Context(), *given.DeepCopy(), registryWrite)
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"x": {1}, "y": []byte("2")}, made.Value.Data)
	before := maps.Clone(made.Value.Data)
	c.must(200, "PATCH", secrets+"/a", `{"stringData":{"z":"3"}}`, "Content-Type", merge)
	require.Equal(t, before, made.Value.Data)
}

func TestSecret_TypesDemandTheirKeys(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	const missing = ": Required value"
	for kind, cases := range map[core.SecretType]map[string]string{
		core.SecretTypeDockercfg:        {`{}`: "data[.dockercfg]" + missing, `{".dockercfg":"x"}`: "<secret contents redacted>", `{".dockercfg":"{}"}`: ""},
		core.SecretTypeDockerConfigJson: {`{}`: "data[.dockerconfigjson]" + missing, `{".dockerconfigjson":"[]"}`: "<secret contents redacted>", `{".dockerconfigjson":"{}"}`: ""},
		core.SecretTypeBasicAuth:        {`{}`: "data[password]" + missing, `{"username":""}`: "", `{"password":"x"}`: ""},
		core.SecretTypeSSHAuth:          {`{"ssh-privatekey":""}`: "data[ssh-privatekey]" + missing, `{"ssh-privatekey":"x"}`: ""},
		core.SecretTypeTLS:              {`{"tls.crt":""}`: "data[tls.key]" + missing, `{"tls.key":""}`: "data[tls.crt]" + missing, `{"tls.crt":"","tls.key":""}`: ""},
		"helm.sh/release.v1":            {`{}`: "", `{"release":"x"}`: ""},
		"":                              {`{}`: ""},
	} {
		n := 0
		for _, texts := range slices.Sorted(maps.Keys(cases)) {
			n++
			data, err := json.Marshal(map[string]any{"metadata": map[string]any{"generateName": "s"}, "type": kind, "stringData": json.RawMessage(texts)})
			require.NoError(t, err)
			if told := cases[texts]; told != "" {
				require.Contains(t, c.refused("POST", secrets, string(data)), told)
				continue
			}
			c.must(201, "POST", secrets, string(data))
		}
	}
	token := `{"metadata":{"name":"t"%s},"type":"kubernetes.io/service-account-token"}`
	require.Contains(t, c.refused("POST", secrets, fmt.Sprintf(token, "")), "metadata.annotations[kubernetes.io/service-account.name]"+missing)
	c.must(201, "POST", secrets, fmt.Sprintf(token, `,"annotations":{"kubernetes.io/service-account.name":"me"}`))
	require.Contains(t, c.refused("PATCH", secrets+"/t", `{"type":"other"}`, "Content-Type", merge), "type: Invalid value")
	require.Equal(t, []string{"t"}, c.items(secrets+"?fieldSelector=type%3Dkubernetes.io/service-account-token"))
	large := fmt.Sprintf(`{"metadata":{"name":"l"},"data":{"a":%q}}`, base64.StdEncoding.EncodeToString(make([]byte, core.MaxSecretSize+1)))
	require.Contains(t, c.refused("POST", secrets, large), "data: Too long")
	require.Contains(t, c.refused("POST", secrets, `{"metadata":{"name":"k"},"data":{"a b":"AAAA"}}`), "data[a b]: Invalid value")
}

func TestSecret_WarnsOfACertificateWithoutItsKey(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	a := c.do("POST", secrets, `{"metadata":{"name":"a"},"type":"kubernetes.io/tls","data":{"tls.crt":"","tls.key":""}}`)
	require.Equal(t, 201, a.Code)
	require.Contains(t, a.Header().Get("Warning"), "failed to find any PEM data")
}

// Candidates of a stock leader election send protobuf.
func TestLeases_AreServed(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	c.must(201, "POST", leases, `{"metadata":{"name":"a"},"spec":{"holderIdentity":"me","leaseDurationSeconds":15}}`)
	c.must(422, "PUT", leases+"/a", `{"metadata":{"name":"a"},"spec":{"holderIdentity":"other"}}`)
	_, cells := c.rows(leases)
	require.Equal(t, []any{"a", "me"}, cells[0][:2])
	held, err := c.kinds.Leases().Engine().Get(t.Context(), "default/a", latest)
	require.NoError(t, err)
	require.Equal(t, "me", *held.Value.Spec.HolderIdentity)
}
