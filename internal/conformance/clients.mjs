// Drives the server with the MCP client that most other programs embed, the
// TypeScript SDK, over each of its transports. Prints one line for each, and what
// failed; ends with 1 if anything did. Usage: node clients.mjs URL, where URL is
// what `run server` prints.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { WebSocketClientTransport } from "@modelcontextprotocol/sdk/client/websocket.js";
import {
  CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema, LoggingMessageNotificationSchema,
  PromptListChangedNotificationSchema, ResourceListChangedNotificationSchema, ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

const patience = 10_000; // ms for anything that must come
const watched = "test://watched-resource"; // it changes each second

const http = new URL(process.argv[2]);
const transports = {
  "streamable HTTP": () => new StreamableHTTPClientTransport(http),
  SSE: () => new SSEClientTransport(new URL("/api/mcp/connect", http)),
  WebSocket: () => new WebSocketClientTransport(new URL(`ws://${http.host}/mcp/ws`)),
};

const within = (promise, what) => {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`${what}: nothing in ${patience} ms`)), patience)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

// A client that can be asked everything, and what the server has told it: next
// waits for one notification more, seen holds all; errors are what it could not
// understand.
function newClient() {
  const client = new Client({ name: "typescript", version: "1" }, { capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } } });
  client.setRequestHandler(CreateMessageRequestSchema, () => ({ model: "m", role: "assistant", content: { type: "text", text: "Paris" } }));
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: { username: "ann", email: "a@example.org" } }));
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: "file:///a" }, { uri: "file:///b" }] }));
  const seen = {}, waiting = {}, errors = [];
  client.onerror = (err) => errors.push(err.message);
  for (const schema of [
    ToolListChangedNotificationSchema, PromptListChangedNotificationSchema, ResourceListChangedNotificationSchema,
    ResourceUpdatedNotificationSchema, LoggingMessageNotificationSchema,
  ]) {
    const method = schema.shape.method.value;
    seen[method] = [];
    client.setNotificationHandler(schema, (n) => {
      seen[method].push(n.params);
      waiting[method]?.(n.params);
    });
  }
  const next = (method) => within(new Promise((resolve) => (waiting[method] = resolve)), method);
  return { client, seen, next, errors };
}

const call = async (client, name, args = {}, options) => (await client.callTool({ name, arguments: args }, undefined, options)).content[0]?.text;

// What must hold over every transport, in this order, on one session.
const checks = {
  async initialize({ client }) {
    assert.equal(client.getServerVersion().version, "conformance");
    const offered = client.getServerCapabilities();
    assert.ok(offered.tools.listChanged && offered.prompts.listChanged && offered.resources.subscribe && offered.logging && offered.completions);
  },
  async ping({ client }) {
    assert.deepEqual(await client.ping(), {});
  },
  async lists({ client }) {
    const tools = (await client.listTools()).tools;
    for (const name of ["time.now", "util.hash", "test_simple_text"]) {
      const tool = tools.find((t) => t.name === name);
      assert.ok(tool?.description && tool.inputSchema.type === "object", name);
    }
    assert.equal(new Set(tools.map((t) => t.name)).size, tools.length);
    assert.ok((await client.listResources()).resources.some((r) => r.uri === watched));
    assert.ok((await client.listResourceTemplates()).resourceTemplates.some((r) => r.uriTemplate === "test://template/{id}/data"));
    assert.ok((await client.listPrompts()).prompts.some((p) => p.name === "test_simple_prompt"));
  },
  async reads({ client }) {
    assert.match((await client.readResource({ uri: "test://template/7/data" })).contents[0].text, /Data for ID: 7/);
    await assert.rejects(client.readResource({ uri: "test://none" }), { code: -32602 });
    const prompt = await client.getPrompt({ name: "test_prompt_with_arguments", arguments: { arg1: "a", arg2: "b" } });
    assert.equal(prompt.messages[0].content.text, "Prompt with arguments: arg1='a', arg2='b'");
  },
  async calls({ client }) {
    assert.equal(await call(client, "test_simple_text"), "This is a simple text response for testing.");
    const failed = await client.callTool({ name: "test_error_handling", arguments: {} });
    assert.ok(failed.isError && failed.content[0].text.includes("always fails"));
    await assert.rejects(client.callTool({ name: "no.such_tool", arguments: {} }), { code: -32602 });
  },
  async "calls at once"({ client }) {
    const hashes = await Promise.all(Array.from({ length: 50 }, (_, i) => call(client, "util.hash", { data: `n${i}` })));
    assert.equal(new Set(hashes).size, 50);
    assert.equal(hashes[7], await call(client, "util.hash", { data: "n7" }));
  },
  async progress({ client }) {
    const told = [];
    await call(client, "test_tool_with_progress", {}, { onprogress: (p) => told.push(p.progress) });
    assert.deepEqual(told, [0, 50, 100]);
  },
  async cancel({ client }) {
    const before = Number(await call(client, "test_cancelled_waits"));
    const abort = new AbortController();
    const waits = call(client, "test_wait", {}, { signal: abort.signal, onprogress: () => abort.abort("enough") });
    await within(assert.rejects(waits, /enough/), "the call that was given up");
    const until = Date.now() + patience;
    while (Number(await call(client, "test_cancelled_waits")) !== before + 1) {
      assert.ok(Date.now() < until, "the tool runs on");
      await sleep(20);
    }
  },
  async "asked by the server"({ client }) {
    assert.equal(await call(client, "test_sampling", { prompt: "capital?" }), "LLM response: Paris");
    assert.match(await call(client, "test_elicitation"), /action accept, content .*"username":"ann"/);
    assert.equal(await call(client, "test_input_required_result_list_roots"), "2 roots");
  },
  async log({ client, seen }) {
    const told = seen["notifications/message"];
    await client.setLoggingLevel("error");
    await call(client, "test_tool_with_logging");
    assert.equal(told.length, 0, "told below the level");
    await client.setLoggingLevel("info");
    await call(client, "test_tool_with_logging");
    assert.deepEqual(told.map((m) => m.level), ["info", "info", "info"]);
  },
  async subscription({ client, seen, next }) {
    const updated = "notifications/resources/updated";
    assert.equal(seen[updated].length, 0, "told without having asked");
    await client.subscribeResource({ uri: watched });
    assert.deepEqual(await next(updated), { uri: watched });
    await client.unsubscribeResource({ uri: watched });
    await sleep(200); // what was on its way
    const count = seen[updated].length;
    await sleep(1500); // it has changed again
    assert.equal(seen[updated].length, count, "told after unsubscribing");
  },
  async "changed lists"({ client, next }) {
    for (const kind of ["tool", "prompt", "resource"]) {
      const told = next(`notifications/${kind}s/list_changed`);
      await Promise.all([told, call(client, `test_trigger_${kind}_change`)]);
    }
    assert.equal(await call(client, "test_passing_tool"), undefined);
  },
  async "nothing odd"({ errors }) {
    // The call that was given up may still be answered; a client drops that.
    assert.deepEqual(errors.filter((text) => !/unknown message ID.*context canceled/.test(text)), []);
  },
  async close({ client }) {
    const transport = client.transport, session = transport.sessionId;
    await transport.terminateSession?.();
    await client.close();
    await assert.rejects(client.ping(), /Not connected|closed/i);
    if (session) {
      const late = await fetch(http, {
        method: "POST", body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
        headers: { "Content-Type": "application/json", Accept: "application/json, text/event-stream", "Mcp-Session-Id": session },
      });
      assert.equal(late.status, 404, "the session lives on");
    }
  },
};

let failures = 0;
for (const [name, transport] of Object.entries(transports)) {
  const state = newClient(), failed = [];
  try {
    await within(state.client.connect(transport()), "connect");
    for (const [what, check] of Object.entries(checks)) {
      await within(check(state), what).catch((err) => failed.push(`${what}: ${err.message}`));
    }
  } catch (err) {
    failed.push(`connect: ${err.message}`);
  }
  failures += failed.length;
  console.log(`${failed.length ? "FAIL " : "ok   "} TypeScript SDK over ${name}: ${Object.keys(checks).length - failed.length} of ${Object.keys(checks).length} checks`);
  for (const line of failed) console.log(`      ${line}`);
}
process.exit(failures ? 1 : 0);
