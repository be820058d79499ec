// HTML that changes often. The framework renders the whole page for each element that it updates;
// what `show` brings goes past that.
export default {
  template: "<div></div>",
  props: {innerHTML: String},
  created() { this.given = this.shown = null; },
  mounted() { this.take(); },
  updated() { this.take(); },
  methods: {
    take() {
      if (this.innerHTML === this.given) return;
      this.given = this.innerHTML;
      this.show(this.given);
    },
    show(html) {
      if (html === this.shown) return;
      this.shown = html;
      this.$el.setHTML(html);
    },
  },
};
