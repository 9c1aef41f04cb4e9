// The tools of this page, as a speaker would have them: a volume that works, and invented ones that answer as they are told.

const own = [
  {
    name: "self.get_device_status", description: "The state of this speaker: its volume.", inputSchema: { type: "object", properties: {} },
    run: (_, page) => JSON.stringify({ audio_speaker: { volume: page.volume() } }),
  },
  {
    name: "self.audio_speaker.set_volume", description: "Sets the volume of this speaker, 0 to 100.",
    inputSchema: { type: "object", properties: { volume: { type: "integer", minimum: 0, maximum: 100 } }, required: ["volume"] },
    run: ({ volume }, page) => {
      if (!Number.isInteger(volume) || volume < 0 || volume > 100) { throw new Error("Missing valid argument: volume"); }
      page.setVolume(volume);
      return "true";
    },
  },
];

const text = (words, isError = false) => ({ content: [{ type: "text", text: words }], isError });

// Tools answers the requests of the server. Its client is the server, as it is for every speaker.
export class Tools {
  constructor(page, send) { this.page = page; this.send = send; this.invented = new Map(); this.waiting = new Set(); }

  // set invents a tool, or changes one: how is answer, late, wrong, bad or never.
  set(tool) { this.invented.set(tool.name, tool); this.changed(); }

  remove(name) { this.invented.delete(name); this.changed(); }

  changed() { this.send({ jsonrpc: "2.0", method: "notifications/tools/list_changed" }); }

  list() {
    const made = [...this.invented.values()].map(({ name, description, argument }) => ({
      name, description, inputSchema: { type: "object", properties: argument ? { [argument]: { type: "string" } } : {}, ...(argument && { required: [argument] }) },
    }));
    return [...own.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })), ...made];
  }

  // handle answers a request, if it is one that is answered.
  handle({ id, method, params }) {
    const answer = (result) => this.send({ jsonrpc: "2.0", id, result });
    const fail = (code, message) => this.send({ jsonrpc: "2.0", id, error: { code, message } });
    switch (method) {
      case "initialize":
        answer({ protocolVersion: "2024-11-05", capabilities: { tools: { listChanged: true } }, serverInfo: { name: "browser", version: "1" } });
        break;
      case "tools/list": answer({ tools: this.list() }); break;
      case "tools/call": this.call(params?.name, params?.arguments || {}, answer, fail); break;
      default: if (id !== undefined && method) { fail(-32601, "Method not found: " + method); }
    }
  }

  call(name, args, answer, fail) {
    const mine = own.find((tool) => tool.name === name);
    if (mine) {
      try { answer(text(mine.run(args, this.page))); } catch (err) { fail(-32602, err.message); }
      return;
    }
    const tool = this.invented.get(name);
    if (!tool) { fail(-32601, "Unknown tool: " + name); return; }
    const say = () => answer(text(tool.text, tool.how === "wrong"));
    switch (tool.how) {
      case "never": break;
      case "bad": answer({ nonsense: tool.text }); break;
      case "late": {
        const timer = setTimeout(() => { this.waiting.delete(timer); say(); }, tool.seconds * 1000);
        this.waiting.add(timer);
        break;
      }
      default: say();
    }
  }

  // stop forgets what is still to be answered.
  stop() { this.waiting.forEach(clearTimeout); this.waiting.clear(); }
}
